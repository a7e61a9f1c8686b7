"""Whether an archived certificate says what the folders of its runs say.

Everything is recomputed from the folders; what the certificate says is only compared with it. When it was written and
with which versions of the libraries cannot be recomputed, and is left out.
"""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._json import finite
from murmurcast.algorithms.account import TOLERANCE
from murmurcast.certificates.document import FORMAT, MADE_BY
from murmurcast.errors import Error

EMBEDDED = "certificate"  # the name of the element of a page that holds the certificate
_MAX_BYTES = 64 * 2**20
_NOT_COMPARED = ("date", "versions", "not_compared")
_MAX_SHOWN = 60  # characters of a value
_LINES_OF_A_LIST = 3


class Archived(NamedTuple):
    """A certificate as it was read.

    Attributes:
        values: What it says.
        page: The whole page it stood in; empty for JSON.
    """

    values: dict[str, Any]
    page: bytes = b""

    @property
    def names(self) -> list[str]:
        """What it calls its runs."""
        return [str(one["name"]) for one in self.values["runs"]]


def read_archived(path: Path) -> Archived:
    """Reads a certificate, or a page that holds one; its claims are not looked at."""
    _check.readable(path)
    if path.suffix == ".pdf":
        raise Error(
            f"{path} is made for people: no program can read its certificate back",
            hint="verify the page it was printed from, or certificate.json; the PDF shows that file's SHA-256",
        )
    if path.stat().st_size > _MAX_BYTES:
        raise Error(f"{path} is too large for a certificate", hint="name a certificate.json, or a page of one")
    content = path.read_bytes()
    text = content.decode(errors="replace")
    is_page = path.suffix == ".html"
    try:
        values = json.loads(_embedded(text) if is_page else text)
        whole = isinstance(values, dict) and values["made_by"] == MADE_BY
        format_, names, delta = values["format"], [one["name"] for one in values["runs"]], values["delta"]
        whole = whole and bool(names) and all(isinstance(name, str) for name in names)
        whole = whole and isinstance(delta, float) and 0 < delta < 1
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise Error(f"{path} holds no certificate", hint="name a certificate.json, or a page that certify --page wrote")
    if format_ != FORMAT:
        raise Error(
            f"{path} is a certificate of another version of murmurcast", hint="verify it with the version that wrote it"
        )
    return Archived(values, content if is_page else b"")


def differences(archived: dict[str, Any], recomputed: dict[str, Any]) -> list[str]:
    """A line for everything in which a certificate differs from what the folders say; empty where it holds."""
    stated, actual = (
        {key: value for key, value in finite(values).items() if key not in _NOT_COMPARED}
        for values in (archived, recomputed)
    )
    return _compared("", stated, actual)


def _compared(where: str, stated: Any, actual: Any) -> list[str]:
    if isinstance(stated, dict) and isinstance(actual, dict):
        keys = sorted(stated.keys() | actual.keys())
        return [line for key in keys for line in _entry(f"{where}.{key}" if where else key, key, stated, actual)]
    if isinstance(stated, list) and isinstance(actual, list):
        return _compared_lists(where, stated, actual)
    if _same(stated, actual):
        return []
    # They may differ at the end only.
    if isinstance(stated, str) and isinstance(actual, str) and len(stated) > _MAX_SHOWN:
        alike = next((place for place, pair in enumerate(zip(stated, actual, strict=False)) if pair[0] != pair[1]), 0)
        stated, actual = (text[max(0, alike - _MAX_SHOWN // 2) :] for text in (stated, actual))
    return [f"{where} is {_shown(stated)} in the certificate, and {_shown(actual)} by the folder"]


def _compared_lists(where: str, stated: list[Any], actual: list[Any]) -> list[str]:
    """Of many entries that differ, as of all nodes, the first stands for all; sentences are in one or in the other."""
    if all(isinstance(one, str) for one in (*stated, *actual)):
        ours, theirs = (
            [one for one in left if one not in right] for left, right in ((stated, actual), (actual, stated))
        )
        return [
            *(f"{where}: {json.dumps(one)} is not so by the folder" for one in ours),
            *(f"{where}: {json.dumps(one)} is not in the certificate" for one in theirs),
            *(
                [f"{where} are in another order, or some stand there more often"]
                if not (ours or theirs) and stated != actual
                else []
            ),
        ]
    if len(stated) != len(actual):
        return [f"{where} has {len(stated)} entries in the certificate, and {len(actual)} by the folder"]
    pairs = enumerate(zip(stated, actual, strict=True))
    lines = [line for place, pair in pairs for line in _compared(f"{where}[{place}]", *pair)]
    if len(lines) < _LINES_OF_A_LIST or any(isinstance(one, dict) for one in stated):
        return lines
    return [f"{lines[0]}; and {len(lines) - 1} more"]


def _entry(where: str, key: str, stated: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    if key not in actual:
        return [f"{where} is in the certificate, and means nothing here"]
    if key not in stated:
        return [f"{where} is not in the certificate, and {_shown(actual[key])} by the folder"]
    return _compared(where, stated[key], actual[key])


def _same(stated: Any, actual: Any) -> bool:
    """Equal; of numbers, up to what libraries and processors differ by."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, actual)]
    if all(numbers):
        return abs(stated) <= 1e300 and bool(np.isclose(stated, actual, rtol=TOLERANCE, atol=0))
    return type(stated) is type(actual) and bool(stated == actual)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


class _Reader(HTMLParser):
    """Collects the text of the elements that are named as the certificate."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("id", EMBEDDED) in attrs:
            self.inside = tag
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[-1] += data


def _embedded(page: str) -> str:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if len(reader.texts) != 1:
        raise ValueError("no certificate, or several")
    return reader.texts[0]
