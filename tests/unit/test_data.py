from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from foxhunt.backend.plan import DataSource
from foxhunt.diagnostics import DataError
from foxhunt.runtime import bars as bars_module
from foxhunt.runtime.bars import Bars, read_bars
from foxhunt.runtime.data import WindowOptions, future_volatility, load_source, ohlcv, windows

REAL = Path(__file__).parents[2] / "examples/data/eurusd_1h_2017.csv"
HEADER = "Time,Open,High,Low,Close,Volume"
SMALL = {"window": 4, "horizon": 3, "regime_bars": 2, "regimes": 2}


def rows(count=100, start=datetime(2024, 1, 1)):
    """Hourly bars of a bounded walk, as CSV lines."""
    lines, price = [], 1.0
    generator = np.random.default_rng(0)
    for k in range(count):
        close = price + float(generator.normal(0, 0.001))
        high, low = max(price, close) + 0.0005, min(price, close) - 0.0005
        when = (start + timedelta(hours=k)).strftime("%d.%m.%Y %H:%M:%S.000")
        lines.append(f"{when},{price:.5f},{high:.5f},{low:.5f},{close:.5f},{1000 + k}")
        price = round(close, 5)
    return lines


def written(tmp_path, lines, name="bars.csv", header=HEADER, newline="\n"):
    path = tmp_path / name
    path.write_text(newline.join([header, *lines]) + newline, encoding="utf-8", newline="")
    return path


def findings(path, **options):
    with pytest.raises(DataError) as error:
        ohlcv(path, SMALL | options)
    return [(d.code, d.location.line if d.location else None, d.message) for d in error.value.diagnostics]


# --- the shipped file


@pytest.fixture(scope="module")
def real():
    return ohlcv(REAL, {})


def test_the_shipped_file_gives_the_arrays_that_specs_aux_declares(real):
    shapes = {name: (a.dtype.name, a.shape) for name, a in real.items()}
    assert shapes == {
        "features": ("float32", (6225, 7)),
        "hour": ("float32", (6225, 2)),
        "close": ("float32", (6225,)),
        "log_return": ("float32", (6225,)),
        "regime_edges": ("float32", (4,)),
        "train_ends": ("int64", (4882,)),
        "eval_ends": ("int64", (1147,)),
        "hour_of_day": ("int32", (6225,)),
    }
    assert all(np.isfinite(a).all() for a in real.values())


def test_no_window_look_back_or_label_crosses_the_split(real):
    split, window, look_back, ahead = 4980, 63, 6, 30
    assert real["train_ends"].min() - (window - 1) - look_back >= 0
    assert real["train_ends"].max() + ahead < split
    assert real["eval_ends"].min() - (window - 1) - look_back >= split
    assert real["eval_ends"].max() + ahead < 6225


def test_held_out_bars_change_no_statistic_of_the_training_part(real):
    bars = read_bars(REAL)
    changed = Bars(bars.path, bars.lines, bars.times, bars.values.copy())
    changed.values[4980:] *= 1.5
    other = windows(changed, WindowOptions())
    assert np.array_equal(other["features"][:4980], real["features"][:4980])
    assert np.array_equal(other["regime_edges"], real["regime_edges"])


def test_features_are_standardised_and_bounded(real):
    train = real["features"][:4980]
    assert np.abs(train.mean(axis=0)).max() < 0.02
    assert np.abs(train.std(axis=0) - 1).max() < 0.1  # clipping at 5 takes a little
    assert np.abs(real["features"]).max() <= 5


def test_regimes_are_equally_frequent_in_the_training_part(real):
    volatility = future_volatility(real["log_return"], real["train_ends"], 6)
    counts = np.bincount(np.searchsorted(real["regime_edges"], volatility, side="right"))
    assert len(counts) == 5
    assert counts.max() - counts.min() <= 2


def test_directions_in_float32_are_those_of_the_written_prices(real):
    close = read_bars(REAL).values[:, 3]
    ends = np.concatenate([real["train_ends"], real["eval_ends"]])
    exact = np.sign(np.round((close[ends + 30] - close[ends]) * 1e5))
    assert np.array_equal(np.sign(real["close"][ends + 30] - real["close"][ends]), exact)
    assert (exact == 0).sum() > 0, "some moves are masked"


def test_hours_are_those_of_the_bar(real):
    assert real["hour_of_day"][:3].tolist() == [22, 23, 0]
    assert np.allclose(real["hour"][2], [0, 1])


# --- what is read


def test_iso_times_bom_crlf_quotes_blank_lines_and_any_column_order(tmp_path):
    plain = ohlcv(written(tmp_path, rows()), SMALL)
    lines = []
    for row in rows():
        when, *numbers = row.split(",")
        iso = datetime.strptime(when, "%d.%m.%Y %H:%M:%S.%f").isoformat() + "+00:00"
        lines += [",".join([*(f'"{n}"' for n in numbers[::-1]), iso]), ""]
    other = written(tmp_path, lines, "b.csv", "\ufeffvolume,close,low,high,OPEN, time ", "\r\n")
    for name, array in ohlcv(other, SMALL).items():
        assert np.array_equal(array, plain[name]), name


def test_times_with_a_zone_become_utc(tmp_path):
    lines = [
        r.replace(r.split(",")[0], (datetime(2024, 1, 1, 2) + timedelta(hours=k)).isoformat() + "+02:00")
        for k, r in enumerate(rows())
    ]
    assert ohlcv(written(tmp_path, lines), SMALL)["hour_of_day"][:2].tolist() == [0, 1]


def test_weekends_are_no_gaps(tmp_path):
    lines = rows(24 * 14)
    kept = [r for r in lines if datetime.strptime(r[:10], "%d.%m.%Y").weekday() < 5]
    assert len(kept) < len(lines)
    ohlcv(written(tmp_path, kept), SMALL | {"max_gap_hours": 1})


# --- what is refused


def test_a_missing_file_a_folder_and_no_path(tmp_path):
    assert findings(tmp_path / "no.csv")[0][0] == "FH520"
    assert findings(tmp_path)[0][0] == "FH520"
    with pytest.raises(DataError, match="needs a path"):
        ohlcv(None, {})


@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path, content):
    path = tmp_path / "empty.csv"
    path.write_bytes(content)
    assert findings(path) == [("FH520", 0, "the file is empty")]


def test_a_header_without_bars_is_too_few_bars(tmp_path):
    assert findings(written(tmp_path, []))[0][0] == "FH525"


def test_text_in_another_encoding_names_the_line(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("\n".join([HEADER, *rows(5), "fünf,1,1,1,1,1"]).encode("latin-1"))
    assert findings(path) == [("FH521", 7, "not UTF-8 text (byte 0xfc)")]
    path.write_bytes("\n".join([HEADER, *rows(5)]).encode("utf-16"))
    assert findings(path)[0][:2] == ("FH521", 1)


def test_missing_and_doubled_columns_are_named_together(tmp_path):
    found = findings(written(tmp_path, rows(), header="Time,Open,High,High,Close"))
    assert [m.partition(";")[0] for _, _, m in found] == [
        "column High stands twice",
        "column Low is missing",
        "column Volume is missing",
    ]


def broken(tmp_path, changes, count=100, **options):
    lines = rows(count)
    for at, change in changes.items():
        lines[at] = change(lines[at])
    return findings(written(tmp_path, lines), **options)


def cell(index, text):
    return lambda row: ",".join(text if k == index else c for k, c in enumerate(row.split(",")))


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (cell(0, "yesterday"), "FH521", "not a time: 'yesterday'"),
        (cell(0, "31.02.2024 00:00:00.000"), "FH521", "not a time"),
        (cell(0, ""), "FH521", "not a time"),
        (cell(1, "x"), "FH521", "open is not a number: 'x'"),
        (cell(2, ""), "FH521", "high is not a number: ''"),
        (cell(4, "1_0"), "FH521", "close is not a number"),
        (cell(3, "nan"), "FH523", "low is nan"),
        (cell(3, "-inf"), "FH523", "low is -inf"),
        (cell(5, "1e999"), "FH523", "volume is 1e999"),
        (lambda row: row.rpartition(",")[0], "FH521", "5 fields"),
        (lambda row: "\x00", "FH521", "1 fields"),
        (cell(4, "0"), "FH523", "not positive"),
        (cell(1, "-1"), "FH523", "not positive"),
        (cell(5, "-1"), "FH523", "volume is negative"),
        (cell(2, "0.5"), "FH523", "high is below low"),
        (cell(4, "9"), "FH523", "above high"),
        (cell(4, "0.1"), "FH523", "below low"),
    ],
)
def test_a_bar_that_cannot_be_is_named_by_line(tmp_path, change, code, words):
    found = broken(tmp_path, {10: change})
    assert found[0][:2] == (code, 12)
    assert any(words in message for _, _, message in found)


def test_duplicate_and_unsorted_times(tmp_path):
    lines = rows()
    lines[20] = lines[19].split(",")[0] + "," + lines[20].partition(",")[2]
    lines[50], lines[51] = lines[51], lines[50]
    found = findings(written(tmp_path, lines))
    assert [f[:2] for f in found] == [("FH522", 22), ("FH522", 53)]


def test_a_hole_in_the_week_is_found_and_can_be_allowed(tmp_path):
    lines = rows(60) + rows(60, datetime(2024, 1, 5))  # Wednesday noon to Friday
    found = findings(written(tmp_path, lines))
    assert found == [("FH524", 62, "37 hours without a bar before this one, weekends not counted (limit 24)")]
    ohlcv(written(tmp_path, lines), SMALL | {"max_gap_hours": 40})


def test_all_findings_come_together_up_to_a_cap(tmp_path):
    found = broken(tmp_path, {k: cell(1, "x") for k in range(30)})
    assert len(found) == 21
    assert found[-1][2] == "and 10 more findings"


def test_too_few_bars_say_how_many_are_needed(tmp_path):
    with pytest.raises(DataError) as error:
        ohlcv(written(tmp_path, rows(40)), SMALL)
    diagnostic = error.value.diagnostics[0]
    assert diagnostic.code == "FH525"
    needed = int(diagnostic.help.split()[2])
    ohlcv(written(tmp_path, rows(needed)), SMALL)


def test_prices_that_never_move_have_no_regimes(tmp_path):
    lines = [f"{r.split(',')[0]},1,1,1,1,0" for r in rows()]
    assert "move too little" in findings(written(tmp_path, lines))[0][2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"windw": 3}, "Did you mean window?"),
        ({"window": 0}, "positive whole"),
        ({"window": 2.5}, "positive whole"),
        ({"window": "63"}, "positive whole"),
        ({"window": True}, "positive whole"),
        ({"train_fraction": 1}, "below 1"),
        ({"train_fraction": float("nan")}, "positive number"),
        ({"regimes": 1}, "at least 2"),
        ({"max_gap_hours": -1}, "positive number"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(DataError) as error:
        ohlcv(REAL, options)
    assert error.value.diagnostics[0].code == "FH527"
    assert words in str(error.value)


def test_an_unknown_reader_offers_the_nearest():
    with pytest.raises(DataError, match="Did you mean ohlcv"):
        load_source(DataSource("bars", "ohlc", None), Path("."))


def test_a_relative_path_is_found_beside_the_program_and_above_it(tmp_path, monkeypatch):
    written(tmp_path, rows())
    folder = tmp_path / "generated" / "aux"
    folder.mkdir(parents=True)
    monkeypatch.chdir("/")
    source = DataSource("bars", "ohlcv", "bars.csv", tuple(SMALL.items()))
    assert len(load_source(source, folder)["close"]) == 100
    with pytest.raises(DataError, match="no such data file"):
        load_source(source, Path("/"))


# --- Parquet


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"foxhunt\[parquet\]"):
        read_bars(path)


def arrow(monkeypatch, columns):
    """A stand-in for pyarrow whose file has these columns."""

    class Table:
        column_names = tuple(columns)

        def column(self, index):
            values = list(columns.values())[index]
            return type("Column", (), {"to_pylist": lambda self: list(values)})()

    parquet = type("parquet", (), {"read_table": staticmethod(lambda path: Table())})
    package = type("pyarrow", (), {"parquet": parquet, "ArrowException": RuntimeError})
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", package)


def test_parquet_gives_what_csv_gives(tmp_path, monkeypatch):
    cells = [row.split(",") for row in rows()]
    columns = {name: [float(c[k]) for c in cells] for k, name in enumerate(HEADER.split(",")) if k}
    columns["Time"] = [datetime.strptime(c[0], "%d.%m.%Y %H:%M:%S.%f") for c in cells]
    arrow(monkeypatch, columns)
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    plain = ohlcv(written(tmp_path, rows()), SMALL)
    for name, array in ohlcv(path, SMALL).items():
        assert np.array_equal(array, plain[name]), name
    columns["Open"][3] = None
    columns["Time"][4] = "never"
    assert [f[:2] for f in findings(path)] == [("FH521", 4), ("FH521", 5)]


def test_the_weekend_clock_counts_saturdays_and_sundays():
    friday = int(datetime.fromisoformat("2024-01-05T22:00+00:00").timestamp() * 1000)
    hours = np.arange(0, 72) * bars_module.HOUR + friday
    weekend = np.diff(bars_module._weekend(hours)) // bars_module.HOUR
    assert weekend.tolist() == [0, 0, *[1] * 48, *[0] * 21]
