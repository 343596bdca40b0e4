"""Who logs in: read at each login, on the helper thread where that may block, and replaced while the producer runs."""

from __future__ import annotations

import pytest

from forebay._network.sasl.login import Login
from forebay._network.sasl.mechanism import Blocking
from forebay.config import Secret
from forebay.config._security_rules import Credentials
from forebay.errors import ConfigError, SaslAuthenticationError


def test_what_is_given_is_read_at_once() -> None:
    login = Login(lambda: Credentials("alice", Secret("word")))
    assert login.who == "'alice'" and "word" not in repr(login)
    with pytest.raises(StopIteration) as end:
        next(login.now())
    assert end.value.value.password.reveal() == "word"


def test_what_is_looked_up_is_work_for_the_helper_at_each_login() -> None:
    words = iter(("one", "two"))
    login = Login(lambda: Credentials("alice", Secret(next(words))), deferred=True)
    assert "not read yet" in login.who
    for word in ("one", "two"):
        steps = login.now()
        work = next(steps)
        assert isinstance(work, Blocking)
        work.run()
        with pytest.raises(StopIteration) as end:
            steps.send(work.result)
        assert end.value.value.password.reveal() == word
    assert login.who == "'alice'"


def test_what_cannot_be_read_is_a_refusal_that_names_the_reason() -> None:
    steps = Login(lambda: Credentials("a", Secret("b")), deferred=True).now()
    next(steps)
    with pytest.raises(SaslAuthenticationError, match=r"cannot be read: \$\{env:X\} is not there"):
        steps.throw(ConfigError("${env:X} is not there"))


def test_other_credentials_from_the_next_login_on() -> None:
    login = Login(lambda: Credentials("alice", Secret("old")), deferred=True)
    login.replace(Credentials("bob", Secret("new")))
    with pytest.raises(StopIteration) as end:
        next(login.now())
    assert end.value.value == ("bob", Secret("new"), False) and login.who == "'bob'"
