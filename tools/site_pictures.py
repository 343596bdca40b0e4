"""Pictures of pages of the documentation site in Chromium, to be looked at: ``python -m tools.site_pictures FOLDER``.

It takes the pages that ``make docs`` wrote, each at three widths, light and dark.  It needs the command ``chromium``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SITE = Path(__file__).parents[1] / "build" / "site"
PAGES = ("index", "first_steps", "deployment", "memory", "what_to_do_when", "reference/options", "api")
WIDTHS = (400, 1280, 1920)
HEIGHT = 1600
TIMEOUT_S = 60.0


def take(page: Path, width: int, picture: Path, *, dark: bool = False) -> None:
    """One page in a frame of this width: a window of Chromium cannot be as narrow as a telephone."""
    frame = picture.with_suffix(".html")
    frame.write_text(
        f'<body style="margin:0"><iframe src="{page.as_uri()}" style="border:0;width:{width}px;height:{HEIGHT}px">'
        "</iframe></body>",
        encoding="utf-8",
    )
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--allow-file-access-from-files", f"--window-size={max(width, 500)},{HEIGHT}"]
    command += ["--blink-settings=preferredColorScheme=0"] if dark else []
    command += [f"--screenshot={picture}", frame.as_uri()]
    subprocess.run(command, check=True, timeout=TIMEOUT_S, capture_output=True)
    frame.unlink()


def main(folder: Path) -> int:
    if shutil.which("chromium") is None or not (SITE / "index.html").exists():
        print("needs the command chromium, and the site that `make docs` builds", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        for width in WIDTHS:
            for dark in (False, True):
                picture = f"{name.replace('/', '-')}-{width}{'-dark' if dark else ''}.png"
                take(SITE / f"{name}.html", width, folder / picture, dark=dark)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
