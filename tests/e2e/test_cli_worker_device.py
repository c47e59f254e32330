"""`kb worker --device`: a processor or a GPU, and a clear error where there is none."""

from pathlib import Path

from commands import HASHING, KB, Ran, run


def worker(home: Path, *options: str, model: tuple[str, ...] = ()) -> Ran:
    return run([KB, "--home", str(home), *model, "worker", "--drain", *options])


def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    """It says which devices there are, and no job is touched; the processor is always there."""
    note = tmp_path / "note.md"
    note.write_text("# Note\n\nOaks.\n")
    home = tmp_path / "home"
    assert run([KB, "--home", str(home), "add", "--no-wait", str(note)]).code == 0
    wrong = worker(home, "--device", "nothing:0")
    assert wrong.code == 2
    assert "onnxruntime has" in wrong.err
    assert "cpu" in wrong.err
    done = worker(home, "--device", "cpu")
    assert (done.code, done.out) == (0, "0 jobs left, 0 failed\n")


def test_a_model_that_chooses_no_device(tmp_path: Path) -> None:
    """Models of servers and of tests run where they run."""
    home = tmp_path / "home"
    assert worker(home, "--device", "cpu", model=HASHING).code == 0
    refused = worker(home, "--device", "cuda", model=HASHING)
    assert (refused.code, "hashing choose no device" in refused.err) == (2, True)
