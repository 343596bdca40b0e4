"""Writes mistakes: a wrong name and a wrong value of each option, and of each public parameter, one in each line.

`python -m tests.package.mistakes` prints the file and the numbers of the lines that have a mistake, as JSON.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator

import forebay
from forebay.config import Option, Type, table
from tools.stubs import INNER, c_functions

DOORS = ("KafkaProducer", "AsyncKafkaProducer", "AdminClient", "ProducerConfig", "per_process")
HEAD = """import forebay
from typing import Any
class Wrong: ...
x: Any = None
_: Any = None
"""
# What users do not make: the package hands them out.
HANDED_OUT = {
    "BatchDelivery",
    "KafkaError",
    "ProducerDescription",
    "RecordFuture",
    "RecordMetadata",
    "TransactionIdentity",
}
ANYTHING = re.compile(r"(^|\| )(Any|object)$")
"""Annotations of parameters that take any value: a serializer's input, a column, another client's group."""


def wrong_value(option: Option) -> str:
    """A value that somebody might write, and that is not of the option's type."""
    if option.choices:
        return repr(option.choices[0] + "?")
    return "5" if option.type in (Type.STRING, Type.PASSWORD, Type.CLASS, Type.LIST) else "'5'"


def wrong_options() -> Iterator[str]:
    """For each option and each call that takes options, a misspelt name and a wrong value."""
    for option in table():
        name = option.name.replace(".", "_")
        for door in DOORS:
            yield f"forebay.{door}({name}z=x)"
            yield f"forebay.{door}({name}={wrong_value(option)})"


def public_calls() -> Iterator[tuple[str, list[inspect.Parameter]]]:
    """How each public call is written, and its parameters."""
    for name in forebay.__all__:
        thing = getattr(forebay, name)
        if inspect.isfunction(thing) or (isinstance(thing, type) and name not in HANDED_OUT):
            yield f"forebay.{name}", list(inspect.signature(thing).parameters.values())
        for method in sorted(names_of(thing)) if isinstance(thing, type) else ():
            found = inspect.getattr_static(thing, method)
            own = isinstance(found, (classmethod, staticmethod))
            if own or (inspect.isroutine(found) and hasattr(thing, method)):
                parameters = list(inspect.signature(getattr(thing, method)).parameters.values())
                yield (f"forebay.{name}.{method}", parameters) if own else (f"{name}_.{method}", parameters[1:])


def names_of(kind: type) -> set[str]:
    """Public names of a class, and of its bases in this package."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("forebay")]
    found = {name for base in own for name in vars(base) if name not in c_functions() and not name.startswith("_")}
    return found - INNER.get(kind.__name__, set())


def written(call: str, parameters: list[inspect.Parameter], wrong: inspect.Parameter | None) -> str:
    """A call with ``x``, which is Any, for each parameter that has to be given, and a wrong value for one."""
    given = []
    for parameter in parameters:
        value = "Wrong()" if parameter is wrong else "x"
        if parameter.kind is parameter.POSITIONAL_ONLY:
            given.append(value)
        elif parameter.kind is not parameter.VAR_KEYWORD and (
            parameter is wrong or parameter.default is parameter.empty
        ):
            given.append(f"{parameter.name}={value}")
    return f"{call}({', '.join(given)})"


def typed(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    shown = kind if isinstance(kind, str) else getattr(kind, "__name__", repr(kind))
    assert kind is not parameter.empty, parameter
    return not ANYTHING.search(shown.removesuffix(" | None")) and parameter.kind is not parameter.VAR_KEYWORD


def wrong_parameters() -> Iterator[str]:
    """A wrong value for each parameter of each public call, and for each call one that is not there."""
    for call, parameters in public_calls():
        if not any(each.kind is each.VAR_KEYWORD and ANYTHING.search(str(each.annotation)) for each in parameters):
            yield written(call, parameters, None).removesuffix(")") + no_such(parameters)
        yield from (written(call, parameters, parameter) for parameter in parameters if typed(parameter))


def no_such(parameters: list[inspect.Parameter]) -> str:
    """The end of a call: a parameter that is not there."""
    return ", no_such=x)" if written("", parameters, None) != "()" else "no_such=x)"


def old_spellings() -> Iterator[str]:
    """Calls as they were written before the rest was by name."""
    of_async = ("AsyncKafkaProducer_.send", "AsyncKafkaProducer_.send_and_wait")
    for call in ("KafkaProducer_.send", "KafkaProducer_.send_nowait", "forebay.ProducerRecord", *of_async):
        yield from (f"{call}('t', b'v', b'k', [('h', b'1')])", f"{call}('t', timestamp_ms=5)")


def mistakes() -> tuple[str, list[int]]:
    """The file of all mistakes, and the numbers of the lines that have one."""
    variables = [f"{name}_: forebay.{name} = x" for name in forebay.__all__ if isinstance(getattr(forebay, name), type)]
    lines = [*HEAD.splitlines(), *variables]
    lines += [f"_ = lambda: {written(call, parameters, None)}" for call, parameters in public_calls()]
    right = len(lines)
    lines += [f"_ = lambda: {line}" for line in (*wrong_options(), *wrong_parameters(), *old_spellings())]
    return "\n".join(lines) + "\n", list(range(right + 1, len(lines) + 1))


if __name__ == "__main__":
    print(json.dumps(mistakes()))
