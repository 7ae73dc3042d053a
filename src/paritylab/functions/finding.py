"""Users' own functions found again: the ones that a text names.

They are looked for in what a caller passes, in the modules that an option or the variable ``PARITYLAB_FUNCTIONS`` names
(several with commas), and by name in the papers that are here, and in paritylab. Nothing else that a text names is
imported. Whether they compute what the text says is for the caller to see.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import re
import types
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.functions.named import MARK, Named, title
from paritylab.places import Place, places

VARIABLE = "PARITYLAB_FUNCTIONS"
USERS = re.compile(rf"(?:^|(?<= ))(\S+{MARK}(?:[0-9a-f]{{16}})?|{MARK}.+)$")
"""A function of a user's in a text, behind the words of an init: ``mirrored mine.sampler@0123456789abcdef``."""
MOST = 1000
"""Maximum number of ways to choose among functions of one name."""


class Offered:
    """Functions, classes and objects of the user's own that a text may mean; a module stands for all that is in it.

    >>> def cube(z):
    ...     return z**3
    >>> [choice] = Offered([cube]).choices({"activation": f"{title(cube)}@0123456789abcdef"})
    >>> list(choice.values()) == [cube]
    True
    """

    def __init__(self, given: Iterable[Any]) -> None:
        for each in (given := list(given)):
            require(not isinstance(each, str), f"functions= takes functions and modules, not the name {each!r}")
        self._things = [*_spread(given), *_spread(_in_environment())]

    def choices(self, document: Any) -> Iterator[Mapping[str, Any]]:
        """The ways to read the users' functions in JSON values: for each text, something of that name."""
        texts = sorted(set(_texts(document)))
        for chosen in itertools.islice(itertools.product(*map(self._called, texts)), MOST):
            yield dict(zip(texts, chosen, strict=True))

    def _called(self, text: str) -> list[Any]:
        alike = [each for each in self._things if getattr(each, "spec", None) == text]
        alike = alike or [each for each in self._things if _name(each) == text.rpartition(MARK)[0]
                          and (text[0] != MARK or text == f"{MARK}{getattr(each, 'name', '')}")]
        if not alike and (found := _in_a_paper(text.partition(MARK)[0])) is not None:
            alike = [found]
        inside = ", which another function makes and no name leads to" if "<locals>" in text else ""
        require(len(alike) > 0, f"a user's function cannot be rebuilt from its name: {text}{inside}; pass it, or its"
                                " module, in functions= (--functions MODULE of a command)")
        return list({id(each): each for each in alike}.values())


def changed(document: Any, now: Any) -> InvalidInput:
    """What to say if what is offered computes something else than JSON values say; ``now`` are those of the offered."""
    before, after = (" and ".join(sorted(set(_texts(one)) - set(_texts(other))))
                     for one, other in ((document, now), (now, document)))
    return InvalidInput(f"what is offered is not what it was: it is {after} now, not {before}")


def _in_a_paper(name: str) -> Any:
    """What a paper that is here, or paritylab itself, has under this name; None if nothing."""
    for place in [*places(), Place("paritylab", Path(__file__).parents[1], installed=True)]:
        inner = name.removeprefix(f"{place.package}.").split(".")
        if place.folder is None or not name.startswith(f"{place.package}."):
            continue
        for i in range(len(inner) - 1, 0, -1):
            path = place.folder.joinpath(*inner[:i])
            if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
                module = place.load(".".join(inner[:i]))
                with contextlib.suppress(AttributeError):
                    return functools.reduce(getattr, inner[i:], module)
    return None


def _texts(document: Any) -> Iterator[str]:
    """What of JSON values names something of the user's."""
    if isinstance(document, (list, dict)):
        for each in document.values() if isinstance(document, dict) else document:
            yield from _texts(each)
    elif isinstance(document, str) and (found := USERS.search(document)) is not None:
        yield found[1]


@contextlib.contextmanager
def also_in(modules: Iterable[str]) -> Generator[None, None, None]:
    """Look for users' functions in the modules of these names too, here and in processes that are started meanwhile.

    >>> with also_in(["math"]):
    ...     [choice] = Offered([]).choices("math.sqrt@0123456789abcdef")
    >>> choice["math.sqrt@0123456789abcdef"]
    <built-in function sqrt>
    """
    before, added = os.environ.get(VARIABLE), list(modules)
    for name in added:
        imported(name)
    if added:
        os.environ[VARIABLE] = ",".join([*added, *filter(None, [before])])
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def imported(name: str) -> types.ModuleType:
    """The module that a user names; one line says why it cannot be imported.

    >>> imported("no_such_module")
    Traceback (most recent call last):
    ...
    paritylab.errors.InvalidInput: the module 'no_such_module' cannot be imported: No module named 'no_such_module'
    """
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InvalidInput(f"the module {name!r} cannot be imported: {in_a_line(error)}") from error


def _in_environment() -> list[types.ModuleType]:
    return [imported(name) for name in os.environ.get(VARIABLE, "").split(",") if name]


def _spread(given: Iterable[Any]) -> Iterator[Any]:
    for each in given:
        if isinstance(each, types.ModuleType):
            yield from (value for name, value in vars(each).items()
                        if not name.startswith("__") and not isinstance(value, types.ModuleType))
        else:
            yield each


def _name(thing: Any) -> str:
    """What stands before the mark where a thing is written; nothing for one that a user vouches for."""
    if isinstance(thing, Named):
        return ""
    own = getattr(thing, "sample", None) or getattr(thing, "function", None)
    return title(own if own is not None and isinstance(getattr(thing, "spec", None), str) else thing)
