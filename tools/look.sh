#!/bin/sh
# One look at the machine, before anything is installed: all that is missing, in one message.
#
# look.sh PYTHON FOLDER ROOM [java] [maven]
#
# PYTHON is the interpreter to use, empty if none was found.  FOLDER is where the environment comes, and needs ROOM MiB
# of disk.  java and maven are looked for when they are named.  It ends with 1 if something is missing.  A shell, because
# there may be no Python.
set -u
python=$1 folder=$2 room=$3
shift 3

missing='' debian='' fedora='' macos=''

# lacks WHAT DEBIAN FEDORA MACOS: notes one thing, and the packages that bring it.
lacks() {
    missing="$missing
  - $1"
    debian="$debian $2" fedora="$fedora $3" macos="$macos; $4"
}

sees() { command -v "$1" >/dev/null 2>&1; }

look_at_python() {
    if [ -z "$python" ]; then
        found=''
        sees python3 && found=" (python3 is $(python3 -c 'import platform; print(platform.python_version())' 2>&1 | tail -n 1))"
        lacks "Python 3.11 or later with venv and its headers$found; PYTHON=... names one" \
            'python3 python3-venv python3-dev' 'python3 python3-devel' 'brew install python@3.13'
        return
    fi
    if ! sees "$python"; then
        lacks "the Python that PYTHON names: there is no '$python'" 'python3 python3-venv python3-dev' \
            'python3 python3-devel' 'brew install python@3.13'
        return
    fi
    said=$("$python" -c '
import os, sys, sysconfig
if sys.version_info < (3, 11):
    print("version", sys.version.split()[0])
    sys.exit()
try:
    import ensurepip, venv
except ImportError:
    print("venv")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print("headers")' 2>&1) || said="broken $(printf '%s' "$said" | tail -n 1)"
    case $said in
    broken*) lacks "a Python that runs: '$python' says: ${said#broken }" python3 python3 'brew install python@3.13' ;;
    version*)
        lacks "Python 3.11 or later ('$python' is ${said#version })" 'python3 python3-venv python3-dev' \
            'python3 python3-devel' 'brew install python@3.13'
        ;;
    esac
    case $said in *venv*) lacks "the module venv of '$python'" python3-venv python3 'brew install python@3.13' ;; esac
    case $said in *headers*) lacks "the headers of '$python' (Python.h)" python3-dev python3-devel 'brew install python@3.13' ;; esac
}

look_at_compiler() {
    compiler=${CC:-}
    for name in cc gcc clang; do
        [ -z "$compiler" ] && sees "$name" && compiler=$name
    done
    probe=$(mktemp -d) || exit 1
    printf '#include <poll.h>\nint probe(void) { return POLLIN; }\n' >"$probe/probe.c"
    # CC may have options: it is split into words.
    # shellcheck disable=SC2086
    if [ -z "$compiler" ] || ! $compiler -c "$probe/probe.c" -o "$probe/probe.o" >/dev/null 2>&1; then
        lacks "a C compiler with the system's headers${compiler:+ ('$compiler' compiles nothing here)}" 'gcc libc6-dev' gcc \
            'xcode-select --install'
    fi
    rm -rf "$probe"
}

look_at_java() {
    java=java where='on the PATH; JAVA_HOME names another'
    [ -n "${JAVA_HOME:-}" ] && java=$JAVA_HOME/bin/java where="where JAVA_HOME is, $JAVA_HOME"
    # macOS has a program of that name that only says where to get Java.
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${version:-0}" -ge 17 ] ||
        lacks "Java 17 or later${version:+ (it is $version)} ($where)" default-jre-headless java-21-openjdk-headless 'brew install openjdk@21'
}

look_at_disk() {
    case $folder in /*) above=$folder ;; *) above=$PWD/$folder ;; esac
    while [ ! -d "$above" ]; do above=$(dirname "$above"); done
    for place in "$above" "${TMPDIR:-/tmp}"; do
        free=$(df -Pk "$place" 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }')
        if [ -n "$free" ] && [ "$free" -lt "$room" ]; then
            missing="$missing
  - room on the disk of $place: $free MiB are free, about $room are needed"
        fi
    done
}

look_at_python
look_at_compiler
for name in "$@"; do
    case $name in
    java) look_at_java ;;
    maven) sees mvn || lacks 'Maven, which fetches the jars of Kafka (FOREBAY_WITHOUT_KAFKA=1 does without)' maven maven 'brew install maven' ;;
    esac
done
[ "$room" -gt 0 ] && look_at_disk
[ -z "$missing" ] && exit 0

echo "forebay: this machine lacks what is needed here:$missing" >&2
if [ -n "$debian" ]; then
    echo "What installs it:" >&2
    echo "  Debian, Ubuntu:  apt-get install$debian" >&2
    echo "  Fedora:          dnf install$fedora" >&2
    echo "  macOS:           ${macos#; }" >&2
fi
exit 1
