"""ExecStream over made-up events (spec section 5)."""

import gc
import threading

import pytest
import smol
from smol.transport import Decoder, failed_stream

EXIT = {"kind": "exit", "exit_code": 0}
OUT = {"kind": "stdout", "data": "a"}


class Source:
    """Events from a list; blocks behind the last one until it is killed."""

    def __init__(self, *events, error=None):
        self.events = list(events)
        self.error = error
        self.kills = 0
        self.waiting = threading.Event()
        self.killed = threading.Event()

    def __iter__(self):
        return self

    def __next__(self):
        if self.events:
            return self.events.pop(0)
        self.waiting.set()
        assert self.killed.wait(10), "kill() reaches a reader within 10 s"
        if self.error:
            raise self.error
        raise StopIteration

    def kill(self):
        self.kills += 1
        self.killed.set()

    def stream(self):
        return smol.ExecStream(self, self.kill)


def test_TheExitEventIsTheLast():
    source = Source(OUT, EXIT, OUT)
    stream = source.stream()
    assert list(stream) == [OUT, EXIT]
    assert next(stream, None) is None


def test_AnErrorEventIsTheLast():
    source = Source({"kind": "error", "message": "[A] b"}, OUT)
    assert [event["kind"] for event in source.stream()] == ["error"]


def test_KillIsIdempotentAndNothingFollowsIt():
    source = Source(OUT, OUT, EXIT)
    stream = source.stream()
    next(stream)
    stream.kill()
    stream.kill()
    stream.close()
    assert next(stream, None) is None
    assert source.kills == 1


def test_KillAfterTheExitDoesNothing():
    source = Source(EXIT)
    stream = source.stream()
    list(stream)
    stream.kill()
    del stream
    gc.collect()
    assert source.kills == 0


@pytest.mark.parametrize("error", [None, RuntimeError("connection reset")])
def test_KillFreesAReaderThatWaits(error):
    source = Source(error=error)
    stream = source.stream()
    seen = []
    reader = threading.Thread(target=lambda: seen.append(next(stream, None)))
    reader.start()
    assert source.waiting.wait(10)
    stream.kill()
    reader.join(10)
    assert seen == [None]


def test_AnEventThatCrossesAKillIsNotYielded():
    class Crossing(Source):
        def __next__(self):
            self.owner.kill()
            return OUT

    source = Crossing()
    source.owner = source.stream()
    assert next(source.owner, None) is None


@pytest.mark.parametrize("leave", ["with", "break", "del"])
def test_LeavingAStreamKillsIt(leave):
    source = Source(OUT, OUT)
    stream = source.stream()
    if leave == "with":
        with stream as entered:
            assert entered is stream
    else:
        for _ in stream:
            break
        del stream
        gc.collect()
    assert source.kills == 1


def test_AFailedStartIsOneErrorEvent():
    assert list(failed_stream(smol.SmolError("NOT_FOUND", "no m"))) == [
        {"kind": "error", "message": "[NOT_FOUND] no m"}
    ]


class Event:
    def __init__(self, kind, data=b"", code=0):
        self.kind, self.data = kind, data
        self.result = type("Result", (), {"returncode": code})


def decoded(*events):
    decoder = Decoder()
    return [piece for event in events for piece in decoder.events(event)]


def test_ACharacterSplitOverPiecesComesOutWhole():
    euro = "€".encode()
    pieces = decoded(Event("stdout", b"1" + euro[:1]), Event("stderr", b"!"), Event("stdout", euro[1:]))
    assert pieces == [
        {"kind": "stdout", "data": "1"},
        {"kind": "stderr", "data": "!"},
        {"kind": "stdout", "data": "€"},
    ]


def test_BadBytesAndCutCharactersAreReplacementCharacters():
    pieces = decoded(Event("stdout", b"a\xffb"), Event("stderr", b"\xe2\x82"), Event("exit", code=7))
    assert pieces == [
        {"kind": "stdout", "data": "a\ufffdb"},
        {"kind": "stderr", "data": "\ufffd"},
        {"kind": "exit", "exit_code": 7},
    ]
    assert type(pieces[-1]["exit_code"]) is int


def test_PiecesAreAtMost64Kibibytes():
    pieces = decoded(Event("stdout", b"x" * 200_000))
    assert max(len(piece["data"]) for piece in pieces) <= 65536
    assert sum(len(piece["data"]) for piece in pieces) == 200_000
