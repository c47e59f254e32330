"""A link opens once, and becomes a cookie that nobody can guess."""

import itertools

from kb.serve.sessions import Sessions, cookie_named


class Hands:
    """Drawn numbers that never repeat, and a clock that moves when told to."""

    def __init__(self) -> None:
        self._drawn = itertools.count(1)
        self.now_s = 0.0
        self.sessions = Sessions(lambda n: next(self._drawn).to_bytes(n), lambda: self.now_s)


def test_a_link_opens_once() -> None:
    """Its cookie holds as long as the server lives, and the link itself is no cookie."""
    hands = Hands()
    link = hands.sessions.link()
    assert hands.sessions.opened("no" + link) is None
    assert hands.sessions.opened("é") is None
    cookie = hands.sessions.opened(link)
    assert cookie is not None
    assert hands.sessions.opened(link) is None
    assert hands.sessions.holds(cookie)
    assert not hands.sessions.holds(link)
    assert not hands.sessions.holds("")
    assert not hands.sessions.holds("é")


def test_a_link_gets_old() -> None:
    """After an hour, and when many newer ones were made."""
    hands = Hands()
    old, good = hands.sessions.link(), hands.sessions.link()
    hands.now_s = 3_599
    assert hands.sessions.opened(good)
    hands.now_s = 3_601
    assert hands.sessions.opened(old) is None
    links = [hands.sessions.link() for _ in range(17)]
    assert hands.sessions.opened(links[0]) is None
    assert hands.sessions.opened(links[1])


def test_a_cookie_is_read_from_among_others() -> None:
    """One that is there twice counts as none: somebody else has set one."""
    assert cookie_named("a=1; kb-7777=x=y; b=2", "kb-7777") == "x=y"
    assert cookie_named("kb-77=1", "kb-7777") == ""
    assert cookie_named("kb-7777=1; kb-7777=2", "kb-7777") == ""
    assert cookie_named("", "kb-7777") == ""
