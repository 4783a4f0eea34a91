"""What the figures of a run must do."""

import os
import sys

import pytest

from tests.soak.samples import Sample, for_memory, growth, look, memory_slope, slope


def quiet(calls: int, memory: float = 50.0, **more: int) -> Sample:
    figures = {"descriptors": 20, "sockets": 10, "index": 2, "threads": 3, "connections": 8, **more}
    return Sample(at=calls / 100, calls=calls, memory=memory, cpu=1.0, **figures)


def run(*, step: int = 5_000, count: int = 21, memory=lambda calls: 50.0) -> list[Sample]:
    return [quiet(step * n, memory(step * n)) for n in range(count)]


@pytest.mark.parametrize("steepness", [-2.0, 0.0, 0.5])
def test_the_slope_of_a_line_is_that_of_the_line(steepness):
    assert slope([(x, 3 + steepness * x) for x in range(10)]) == pytest.approx(steepness)


def test_the_slope_is_the_one_with_the_least_squares():
    assert slope([(0, 0), (1, 2), (2, 1), (3, 3)]) == pytest.approx(0.8)


@pytest.mark.parametrize("points", [[], [(1.0, 2.0)], [(1.0, 2.0), (1.0, 9.0)]])
def test_too_few_points_have_no_slope(points):
    assert slope(points) == 0


def test_a_steady_run_has_nothing_wrong():
    assert growth(run()) == []


def test_a_run_without_quiet_moments_has_nothing_wrong():
    assert growth([]) == []


def test_memory_that_grows_with_the_calls_is_told():
    samples = run(memory=lambda calls: 50 + calls * 1.5 / 10_000)
    assert memory_slope(for_memory(samples)) == pytest.approx(1.5)
    assert [wrong[:17] for wrong in growth(samples)] == ["memory grows by 1", "memory grew from "]


def test_memory_that_grows_only_while_the_server_warms_up_is_not_told():
    assert growth(run(memory=lambda calls: 50 + min(calls, 30_000) / 750)) == []


def test_a_memory_that_is_higher_in_the_end_is_told():
    assert len(growth(run(memory=lambda calls: 56 if calls >= 90_000 else 50))) == 1


def test_a_single_moment_says_nothing():
    assert growth(run(memory=lambda calls: 56 if calls == 100_000 else 50)) == []


def test_a_short_run_says_nothing_of_memory():
    samples = run(step=50, memory=lambda calls: 50 + calls)
    assert for_memory(samples) == []
    assert growth(samples) == []


def test_a_run_that_ends_while_the_server_warms_up_says_nothing_of_memory():
    assert growth(run(step=1_000, memory=lambda calls: 50 + calls / 1_000)) == []


def test_files_that_stay_open_are_told():
    assert growth([*run(), quiet(105_000, descriptors=21)]) == ["8 open files became 9 after 105000 calls"]


def test_connections_that_are_kept_are_no_leak_and_more_are():
    assert growth([*run(), quiet(105_000, descriptors=36, sockets=26, connections=16)]) == []
    assert growth([*run(), quiet(105_000, descriptors=37, sockets=27)]) == ["10 sockets became 27 after 105000 calls"]
    assert growth([*run(), quiet(105_000, connections=17)]) == ["17 upstream connections are open after 105000 calls"]


def test_the_index_has_a_bound_of_its_own():
    assert growth([*run(), quiet(105_000, descriptors=30, index=12)]) == []
    assert growth([*run(), quiet(105_000, descriptors=31, index=13)]) == [
        "13 descriptors of the index after 105000 calls"
    ]


def test_threads_have_a_bound():
    assert growth([*run(), quiet(105_000, threads=65)]) == ["65 threads after 105000 calls"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
def test_a_process_is_looked_at_from_outside():
    sample = look(os.getpid(), 1.0, 7, connections=2, closely=True)
    assert sample is not None
    assert (sample.at, sample.calls, sample.connections) == (1.0, 7, 2)
    assert sample.memory > 5
    assert sample.threads >= 1
    assert sample.descriptors >= 3
    assert sample.others + sample.sockets + sample.index == sample.descriptors


def test_a_process_that_is_gone_is_not_there_to_be_looked_at():
    assert look(2**22 + 1, 0.0, 0) is None
