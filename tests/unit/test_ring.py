"""The publish ring's reader against a writer that moves on while it reads."""

import threading

import numpy as np
import pytest

from foxhunt.runtime.ring import PublishRing

ROWS, ISV = 16, 5
WORDS = 2 + ISV + 2


class Writer:
    """Publishes rows whose every slot is the step's number; moves on by itself when `latest` is read."""

    def __init__(self, moves=()):
        self.words = np.zeros(2 + ROWS * WORDS, np.uint32)
        self.step = 0
        self.moves = list(moves)
        self.looks = 0

    def publish(self, count=1):
        for _ in range(count):
            row = self.words[2 + self.step % ROWS * WORDS :][:WORDS]
            self.step += 1
            row[0] = self.step
            row[2 : 2 + ISV] = np.full(ISV, self.step, np.float32).view(np.uint32)
            row[2 + ISV :] = np.array([self.step], np.int64).view(np.uint32)
            self.words[:2] = np.array([self.step], np.uint64).view(np.uint32)

    def __call__(self):
        self.looks += 1
        if self.looks > 2 and self.moves:  # after the reader has taken `latest` and the row
            self.publish(self.moves.pop(0))
        return self.words


def ring(writer):
    return PublishRing(writer, ROWS, ISV, 1, 0)


def test_nothing_is_published_before_the_first_step():
    assert ring(Writer()).read() is None


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 100])
def test_the_newest_row_is_read(count):
    writer = Writer()
    writer.publish(count)
    snapshot = ring(writer).read()
    assert snapshot.step == count
    assert snapshot.isv.tolist() == [count] * ISV
    assert snapshot.counters.tolist() == [count]


def test_a_copy_counts_while_the_writer_has_moved_by_less_than_15():
    writer = Writer(moves=[14])
    writer.publish(20)
    assert ring(writer).read().step == 20


def test_a_copy_that_the_writer_may_have_come_round_to_is_taken_again():
    writer = Writer(moves=[15])
    writer.publish(20)
    assert ring(writer).read().step == 35


def test_a_ring_that_was_forgotten_has_nothing():
    writer = Writer()
    writer.publish(3)
    reader = ring(writer)
    reader.forget()
    assert reader.read() is None


def test_a_thread_that_publishes_all_the_time_tears_no_row():
    writer = Writer()
    writer.publish()
    stop = threading.Event()

    def hammer():
        while not stop.is_set():
            writer.publish()

    thread = threading.Thread(target=hammer)
    thread.start()
    reader, last = ring(writer), 0
    for _ in range(3000):
        snapshot = reader.read()
        assert set(snapshot.isv.tolist()) == {float(snapshot.step)}
        assert snapshot.counters[0] == snapshot.step >= last
        last = snapshot.step
    stop.set()
    thread.join()
