"""How objects show themselves: in a notebook as HTML, in a terminal as text.

What they look like is decided by reports, which know every kind of object and lie above most of them. The catalogue is
the one place that knows all folders, and imports each when it is first used: an object asks it as a user would, by a
public name, and no folder imports one that lies above it.
"""


def html_of(thing: object) -> str:
    """What a notebook shows of it."""
    import murmurcast

    return murmurcast.display.html(thing)


def text_of(thing: object) -> str:
    """What `print` shows of it."""
    import murmurcast

    return murmurcast.display.text(thing)
