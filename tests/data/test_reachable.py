import socket
import threading
import time

import pytest

from ptrun.data.reachable import SECONDS, reachable


def took(urls: list[str], seconds: float) -> tuple[bool, float]:
    start = time.monotonic()
    return reachable(urls, seconds), time.monotonic() - start


def test_a_refused_connection_is_noticed_at_once() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        answer, seconds = took([f"http://127.0.0.1:{reserved.getsockname()[1]}/"], 5)
    assert not answer
    assert seconds < 2


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        answer, seconds = took([url, url], 0.2)
    assert not answer
    assert 0.1 < seconds < 2


def test_a_name_look_up_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hangs(*_: object, **__: object) -> list[object]:
        release.wait(10)
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    answer, seconds = took(["http://mirror.invalid/"], 0.2)
    release.set()
    assert not answer
    assert seconds < 2


def test_the_limit_is_five_seconds() -> None:
    assert SECONDS <= 5
