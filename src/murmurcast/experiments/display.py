"""How objects are shown: `html` as notebooks do, `text` as `print` does. No epsilon is shown that `certify` refuses."""

from murmurcast.certificates import compare
from murmurcast.errors import Error
from murmurcast.experiments.rebuild import Rebuilder
from murmurcast.planning.plan import Plan
from murmurcast.reports import notebook, plan_text
from murmurcast.reports.page import fragment
from murmurcast.runs.compare import Comparison
from murmurcast.runs.result import Result


def html(thing: object) -> str:
    """A part of a page about an object, without script: what a notebook shows of it.

    Args:
        thing: A network, a plan, a run, a comparison, a certificate, what `mc.certify` returned, an audit or a sweep.
    """
    if isinstance(thing, Result):
        thing = compare.shown(thing, (), Rebuilder())
    return fragment(*notebook.shown(thing))


def text(thing: object) -> str:
    """An object as text: of a plan what `murmurcast plan` prints, of a comparison its table.

    Args:
        thing: A plan or a comparison.
    """
    if isinstance(thing, Plan):
        return plan_text.text_of(thing, thing.why_nominal)
    if isinstance(thing, Comparison):
        return str(thing)
    raise Error(f"{type(thing).__name__} has no text of its own", hint="give a plan or a comparison, or use html")
