"""From a page to a PDF, by a Chromium that is on this machine anyway."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from murmurcast.errors import Error

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 120  # seconds; a browser that hangs would hang the command


def browser() -> str:
    """Where the browser is."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise Error(
            f"a PDF needs a browser, and none of {', '.join(BROWSERS)} is on the PATH",
            hint="install Chromium, or write an .html page and print it",
        )
    return executable


def as_pdf(page: bytes) -> bytes:
    """The page as a browser prints it."""
    with tempfile.TemporaryDirectory(prefix="murmurcast-") as folder:
        source, pdf = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_bytes(page)
        command = [
            browser(),
            "--headless",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={pdf}",
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),  # root gets no sandbox
            source.as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE)  # noqa: S603 - fixed words
            reason = f"it ended with {done.returncode}"
        except (OSError, subprocess.TimeoutExpired) as problem:
            reason = type(problem).__name__
        content = pdf.read_bytes() if pdf.is_file() else b""
    if not content.startswith(b"%PDF"):
        raise Error(f"the browser wrote no PDF: {reason}", hint="write an .html page and print it")
    return content
