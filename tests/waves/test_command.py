"""`lanewise waves`: data made, F computed, a search, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lanewise.sims import waves
from lanewise.sims.waves.command import app
from lanewise.sims.waves.commands import search
from lanewise.sims.waves.tables import read_sky, read_templates, write_table
from lanewise.sims.waves.units import Job
from lanewise.support.errors import InputError, LanewiseError
from tests.waves.truth import TRUTH, needs_tables, needs_truth, table

SIGNAL = "h0=8e-25,cosi=0.8,psi=0.2,phi0=1,freq=60.0101,alpha=2.0,delta=0.3,f1dot=-2e-10"


def call(*arguments: object) -> str:
    pytest.importorskip("erfa")
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SFTs of two days with a signal."""
    path = tmp_path_factory.mktemp("sfts")
    summary = json.loads(
        call(
            "make-data", "--out", path, "--band", "59.85,60.17", "--start", "1238166018", "--sfts", 100, "--sqrt-s", "1e-23,1e-23",
            "--signal", SIGNAL, "--ref-time", "1238256018", "--ephemeris", "EPV00", "--seed", 8, "--label", "made", "--json",
        )
    )  # fmt: skip
    assert (summary["sfts"], summary["bins"]) == (200, 576)
    assert [Path(f).name for f in summary["files"]] == [
        "H-100_H1_1800SFT_made-1238166018-180000.sft",
        "L-100_L1_1800SFT_made-1238166018-180000.sft",
    ]
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def test_templates_from_a_file(folder, tmp_path):
    (tmp_path / "t.csv").write_text(
        "name,freq,alpha,delta,f1dot\nfirst,60.0101,2.0,0.3,-2e-10\nother,60.02,1.0,-0.3,0\n", encoding="utf-8"
    )
    out = tmp_path / "out.csv"
    summary = json.loads(
        call(
            "fstat", "--sfts", folder / "*.sft", "--templates", tmp_path / "t.csv", "--ref-time", "1238256018", "--cover", "60,60.03",
            "--ephemeris", "EPV00", "--out", out, "--json",
        )
    )  # fmt: skip
    rows = read(out)
    assert [r["name"] for r in rows] == ["first", "other"]
    assert list(rows[0])[:5] == ["name", "freq", "alpha", "delta", "f1dot"]
    sfts = waves.load_sfts(folder / "*.sft", (60.0, 60.03), margin=waves.search_margin())
    data = waves.prepare(sfts, (60.0, 60.03))
    templates = read_templates(tmp_path / "t.csv", waves.gps_time(1238256018)).templates
    expected = waves.f_statistic(data, templates, waves.Ephemeris.load("EPV00"), device="cpu")
    for name, values in {
        "twoF": expected.two_f[0], "Fa_re": expected.fa[0].real, "Fb_im": expected.fb[0].imag, "D": expected.d[0],
        "twoF_H1": expected.two_f_detector[0, 0], "twoF_L1": expected.two_f_detector[0, 1],
    }.items():  # fmt: skip
        assert [float(r[name]) for r in rows] == values.tolist()
    assert summary["largest"] == {"template": 0, "twoF": expected.two_f[0, 0]}
    assert (summary["method"], summary["device"], summary["ephemeris"]) == ("demod", "cpu", "EPV00")
    call(
        "fstat", "--sfts", folder / "*.sft", "--templates", tmp_path / "t.csv", "--ref-time", "1238256018", "--cover", "60,60.03",
        "--ephemeris", "EPV00", "--out", out, "--overwrite", "--device", "numpy",
    )  # fmt: skip
    defined = waves.f_statistic(data, templates, waves.Ephemeris.load("EPV00"))
    assert [float(r["twoF"]) for r in read(out)] == defined.two_f[0].tolist()


def test_no_row_of_a_table_of_templates_is_lost_as_a_comment(tmp_path):
    """Its first value may be a text that begins with #: in quotes it is a row, and without them a question."""
    path, again = tmp_path / "t.csv", tmp_path / "again.csv"
    reference = waves.gps_time(1238256018)
    names, rows = (
        ("name", "freq", "alpha", "delta"),
        [["#1", "60.01", "2.0", "0.3"], [" # 2", "60.02", "1.0", "-0.3"], ["3", "61", "0", "0"]],
    )
    head, bare = ",".join(names) + "\n", "".join(",".join(row) + "\n" for row in rows)
    path.write_text(f"# a, b, c, d\n{head}" + bare, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"t\.csv, line 3: it begins with #, as comments do, and has a value for each column"
    ):
        read_templates(path, reference)
    path.write_text(head + bare.replace("#1", '"#1"').replace(" # 2", '" # 2"') + "# below\n#\n", encoding="utf-8")
    table = read_templates(path, reference)
    assert [list(r) for r in table.rows] == rows
    write_table(again, {"twoF": np.arange(3.0)}, False, (table.names, table.rows))
    back = read_templates(again, reference)
    assert [list(r[:4]) for r in back.rows] == rows
    for values in (
        "#60,1,1\n60.5,1,1\n",
        "60.5,1,1\n# 60, 1, 1\n",
    ):  # no template begins with one where that is a number
        path.write_text("freq,alpha,delta\n" + values, encoding="utf-8")
        assert read_templates(path, reference).rows == (("60.5", "1", "1"),)


@pytest.mark.parametrize("method", ["demod", "resamp", "auto"])
def test_a_band(folder, tmp_path, method):
    text = call(
        "fstat", "--sfts", folder / "*.sft", "--freq", 60.01, "--band", 0.0002, "--step", 2e-6, "--sky", "2.0,0.3", "--f1dot", -2e-10,
        "--ref-time", "1238256018", "--cover", "60,60.03", "--ephemeris", "EPV00", "--method", method, "--out", tmp_path / "o.csv",
    )  # fmt: skip
    rows = read(tmp_path / "o.csv")
    assert len(rows) == 101
    best = max(rows, key=lambda r: float(r["twoF"]))
    assert abs(float(best["freq"]) - 60.0101) < 4e-6
    assert ("ms of one core by demodulation" in text) == (method == "auto")
    assert "101 templates" in text


def test_a_search(folder, tmp_path):
    (tmp_path / "sky.txt").write_text("# alpha delta\n2.0 0.3\n", encoding="utf-8")
    summary = json.loads(
        call(
            "run", "--sfts", folder / "*.sft", "--freq", 60.0095, "--band", 0.001, "--sky", tmp_path / "sky.txt", "--sky", "1.2,-0.7",
            "--f1dot", "-2e-10", "--ref-time", "1238256018", "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--threshold", 4,
            "--ephemeris", "EPV00", "--candidates", 30, "--out", tmp_path / "top.csv", "--quiet", "--json",
        )
    )  # fmt: skip
    rows = read(tmp_path / "top.csv")
    assert (len(rows), summary["maps"], summary["stacks"]) == (30, 2, 5)
    assert float(rows[0]["count"]) == 5.0
    best = [r for r in rows if r["count"] == rows[0]["count"]]
    assert min(abs(float(r["freq"]) - 60.0101) for r in best) < 4e-5
    sfts = waves.load_sfts(folder / "*.sft")
    search = waves.Search(
        freq=60.0095, freq_band=0.001, f1dot=-2e-10, f1dot_band=0.0, reference=waves.gps_time(1238256018), stack=36000.0,
        residuals=3, patch=(0.02, 0.02), threshold=4.0,
    )  # fmt: skip
    expected = waves.hierarchical_search(sfts, search, waves.Ephemeris.load("EPV00"), [(2.0, 0.3), (1.2, -0.7)], 30)
    for name in ("freq", "alpha", "significance"):
        assert [float(r[name]) for r in rows] == expected[name].tolist()
    np.testing.assert_allclose([float(r["twoF"]) for r in rows], expected["twoF"], rtol=1e-5)


@pytest.mark.quick("demod")
@pytest.mark.parametrize("method", ["demod", "resamp"])
def test_pictures(folder, tmp_path, method):
    """Of the right size, and with the signal's peak in them: lines and pixels in colours that noise alone does not have."""
    import matplotlib.image

    common = ("--sfts", folder / "*.sft", "--ref-time", "1238256018", "--ephemeris", "EPV00", "--method", method)
    text = call(
        "fstat", *common, "--freq", 60.01, "--band", 0.0002, "--step", 2e-6, "--sky", "2.0,0.3", "--f1dot", -2e-10, "--cover", "60,60.03",
        "--out", tmp_path / "o.csv", "--plot", tmp_path / "band.png",
    )  # fmt: skip
    assert f"{method} on {'cpu' if method == 'demod' else 'numpy'}: 101 templates" in text
    text = call(
        "run", *common, "--freq", 60.0095, "--band", 0.001, "--sky", "2.0,0.3", "--f1dot", "-2e-10", "--stack", 36000, "--residuals", 3,
        "--patch", 0.02, "--threshold", 4, "--out", tmp_path / "top.csv", "--plot", tmp_path / "map.png",
    )  # fmt: skip
    assert f"{method} on cpu: 1 map of 37 frequencies" in text
    assert " MiB on cpu (data " in text
    for name, shape in (("band.png", (825, 1650)), ("map.png", (870, 1950))):
        picture = matplotlib.image.imread(tmp_path / name)
        assert picture.shape == (*shape, 4)
        colours = np.ascontiguousarray(np.round(picture * 255).astype(np.uint8)).view(np.uint32)
        assert len(np.unique(colours)) > 100
    refusals = {
        "--plot is map.pdf; wanted a file that ends in .png": ("map.pdf", "o2.csv"),
        "map.png exists": (tmp_path / "map.png", tmp_path / "o2.csv"),
    }
    for message, (plot, out) in refusals.items():
        found = refused(
            "fstat",
            *common,
            "--freq",
            60.01,
            "--band",
            0.0002,
            "--step",
            2e-6,
            "--sky",
            "2.0,0.3",
            "--out",
            out,
            "--plot",
            plot,
        )
        assert message.split()[-1] in found


@needs_truth
@needs_tables
def test_the_templates_of_the_truth(tmp_path):
    out = tmp_path / "out.csv"
    call(
        "fstat", "--sfts", TRUTH / "sft_pure" / "*.sft", "--templates", strip(TRUTH / "twoF_pure.csv", tmp_path), "--cover", "99.9,100.1",
        "--ref-time", "1238166018", "--ephemeris", "DE405", "--sqrt-s", "1e-23,1.7e-23", "--out", out,
    )  # fmt: skip
    found = np.array([float(r["twoF"]) for r in read(out)])
    np.testing.assert_allclose(found, table("twoF_pure.csv")["twoF_DemodGeneric_D8"], rtol=0, atol=2e-3)


def strip(source: Path, folder: Path) -> Path:
    """The columns that say what is sought."""
    rows, path = read(source), folder / "templates.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        out = csv.DictWriter(stream, ["id", "kind", "freq", "alpha", "delta", "f1dot", "f2dot"], extrasaction="ignore")
        out.writeheader()
        out.writerows(rows)
    return path


def test_what_is_refused(folder, tmp_path):
    sfts = folder / "*.sft"
    bad = tmp_path / "bad.csv"
    base = ["fstat", "--sfts", sfts, "--ref-time", "1238256018", "--out", tmp_path / "o.csv", "--ephemeris", "EPV00"]
    for text, message in (
        ("", f"{bad}: the file is empty; wanted a line of names, among them freq, alpha, delta"),
        ("freq,alpha\n1,2\n", f"{bad}: there is no column delta; wanted freq, alpha, delta, f1dot, f2dot, f3dot"),
        ("freq,alpha,delta\n", f"{bad}: there are no templates below the names of the columns"),
        ("freq,alpha,delta\n1,2\n", f"{bad}, line 2: it has 2 values; wanted 3, one for each column"),
        ("freq,alpha,delta\n60,2,0\n60,x,0\n", f"{bad}, line 3: alpha is 'x'; wanted a number"),
        (
            "freq,alpha,delta,twoF\n60.01,2,0,5\n",
            f"{bad}: it has the column twoF already; wanted a file without results",
        ),
    ):
        bad.write_text(text, encoding="utf-8")
        assert refused(*base, "--templates", bad) == message
    assert (
        refused(*base)
        == "--freq, --band, --step, --sky are missing; wanted --templates, or --freq, --band, --step and --sky"
    )
    assert refused(*base, "--templates", bad, "--freq", 60) == "--freq cannot be given with --templates"
    assert refused(*base, "--templates", bad, "--method", "resamp").startswith("--method resamp needs a band")
    assert refused(*base, "--templates", bad, "--method", "fast") == "--method is 'fast'; wanted demod, resamp or auto"
    assert refused(*base, "--templates", bad, "--sqrt-s", "1") == "--sqrt-s has 1 values; wanted 2, for H1, L1"
    assert (
        refused(*base, "--templates", bad, "--cover", "60")
        == "--cover is '60'; wanted two numbers with a comma between"
    )
    assert refused(*base, "--templates", bad, "--ref-time", "now") == "--ref-time is 'now'; wanted GPS seconds"
    assert not (tmp_path / "o.csv").exists()
    (tmp_path / "o.csv").write_text("mine", encoding="utf-8")
    assert "the file exists already; give --overwrite to replace it" in refused(*base, "--templates", bad)
    assert (tmp_path / "o.csv").read_text(encoding="utf-8") == "mine"
    made = ["make-data", "--out", tmp_path, "--band", "60,61", "--start", "1e9", "--sfts", 2]
    assert refused(*made, "--signal", "h0=1,freq=60").startswith("--signal lacks cosi, alpha, delta")
    assert refused(*made, "--signal", "h=1").startswith(
        "--signal has 'h=1'; wanted NAME=NUMBER, each once, of h0, cosi"
    )
    bad.write_text("1 2 3\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad.csv, line 1: it has 3 values; wanted alpha and delta"):
        read_sky(bad)


def test_bad_files_are_listed(folder, tmp_path):
    pytest.importorskip("erfa")
    name = "H-100_H1_1800SFT_made-1238166018-180000.sft"
    raw = bytearray((folder / name).read_bytes())
    raw[1000] ^= 1
    (tmp_path / "bad.sft").write_bytes(raw)
    (tmp_path / "t.csv").write_text("freq,alpha,delta\n60.01,2.0,0.3\n", encoding="utf-8")
    arguments = ["fstat", "--sfts", tmp_path / "bad.sft", "--templates", tmp_path / "t.csv", "--ref-time", "1238256018",
                 "--ephemeris", "EPV00", "--out", tmp_path / "o.csv"]  # fmt: skip
    assert f"{tmp_path / 'bad.sft'}, SFT 0: damaged: its checksum" in refused(*arguments)
    done = CliRunner().invoke(app, [str(a) for a in (*arguments, "--skip-bad")], catch_exceptions=False)
    assert done.exit_code == 0
    assert f"left out: {tmp_path / 'bad.sft'}, SFT 0: damaged: its checksum" in done.output
    assert "99 SFTs" in done.output


@pytest.mark.quick("cpu")
@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_search_in_units(folder, tmp_path, device):
    """The same list in any number of units; a folder that is named stays, and is resumed with the same options alone."""
    base = ["run", "--sfts", folder / "*.sft", "--freq", 60.0099, "--band", 0.0002, "--sky", "2.0,0.3", "--sky", "1.2,-0.7", "--ref-time",
            "1238256018", "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--ephemeris", "EPV00", "--candidates", 30, "--quiet",
            "--json", "--device", device]  # fmt: skip
    units = tmp_path / "units"
    one = json.loads(call(*base, "--out", tmp_path / "a.csv"))
    many = json.loads(
        call(*base, "--out", tmp_path / "b.csv", "--units", 2, "--checkpoint-folder", units, "--checkpoint-every", 0)
    )
    assert (one["units"], one["maps"], many["units"], many["maps"]) == (1, 2, 2, 2)
    assert (one["device"], one["memory"] is None) == (device, device == "numpy")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "b.csv", "units"]
    again = [*base, "--out", tmp_path / "c.csv", "--checkpoint-folder", units]
    assert f"{units}: there are checkpoints of a search; give --resume to continue from them" in refused(*again)
    assert "the checkpoints are of another search: dterms is 9 here and 8 there" in refused(
        *again, "--resume", "--dterms", 9
    )
    call(*again, "--resume")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
    out = ["--out", tmp_path / "d.csv"]
    assert refused(*base, *out, "--resume") == (
        f"{tmp_path / 'd.csv.units'}: there is no search to resume; leave --resume out to begin one"
    )
    assert refused(*base, *out, "--checkpoint-every", -1) == "--checkpoint-every is -1; wanted seconds, zero or more"
    assert not (tmp_path / "d.csv.units").exists()
    assert refused(*base, *out, "--workers", 0) == "0 workers requested; wanted at least 1"


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_checkpoints_are_as_frequent_as_asked(folder, tmp_path, monkeypatch, device):
    """Each of four maps with zero seconds between; with an hour the last one alone."""
    from lanewise.sims.waves.units import work

    true, written = work.write_state, []
    monkeypatch.setattr(work, "write_state", lambda *state: (written.append(state), true(*state)))
    for seconds, count in ((0, 4), (3600, 1)):
        written.clear()
        call(
            "run", "--sfts", folder / "*.sft", "--freq", 60.0099, "--band", 0.0002, "--sky", "uniform:0.1@2.0,2.4,0.3,0.4", "--ref-time",
            "1238256018", "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--ephemeris", "EPV00", "--candidates", 30, "--quiet",
            "--device", device, "--checkpoint-every", seconds, "--out", tmp_path / f"{seconds}.csv",
        )  # fmt: skip
        assert len(written) == count


def test_options_that_are_missing(folder, tmp_path):
    assert refused("run", "--sfts", folder / "*.sft") == (
        "--ref-time, --freq, --band, --sky, --stack, --out are missing; --help describes them"
    )
    assert refused("fstat", "--out", "x.csv", "--ref-time", "1") == ("--sfts is missing; --help describes them")
    assert refused("make-data").startswith("--out, --band, --start, --sfts are missing")
    made = (
        "make-data",
        "--out",
        tmp_path,
        "--band",
        "60,60.1",
        "--start",
        1238166018,
        "--sfts",
        2,
        "--sqrt-s",
        "1e-23,1e-23",
    )
    assert refused(*made, "--ephemeris", "EPV00") == "--ephemeris needs --signal: without a signal it has no effect"
    assert refused(*made, "--ephemeris", "EPV00", "--ref-time", 1) == (
        "--ephemeris and --ref-time need --signal: without a signal they have no effect"
    )


def test_help_says_the_defaults():
    """Options have the defaults that stand in their help; those of `run` are the search's."""
    import dataclasses

    from lanewise.sims.waves.commands.options import Input, SearchGrid

    search = {f.name: f.default for f in dataclasses.fields(waves.Search)}
    for cls in (SearchGrid, Input):
        for f in dataclasses.fields(cls):
            if search.get(f.name, dataclasses.MISSING) is not dataclasses.MISSING:
                assert f.default == search[f.name], f.name


def test_resampling_is_not_asked_of_a_gpu(folder, tmp_path, monkeypatch):
    """It runs on the host: a GPU that is requested is not silently left idle."""
    from lanewise.sims.waves.commands import statistic

    monkeypatch.setattr(statistic, "check_device", lambda device: None)  # as if there were one
    band = ["fstat", "--sfts", folder / "*.sft", "--freq", 60.01, "--band", 0.0002, "--step", 2e-6, "--sky", "2.0,0.3", "--ref-time",
            "1238256018", "--ephemeris", "EPV00", "--out", tmp_path / "o.csv", "--device", "cuda"]  # fmt: skip
    message = "--method resamp is computed on the host, found --device cuda; leave --device out"
    assert refused(*band, "--method", "resamp") == message
    asked = []

    def without(data, templates, ephemeris, *, dterms, device):
        asked.append(device)
        return statistic.waves.FStatistic(
            *(np.zeros((1, *s, len(templates))) for s in ((), (2,), (), (), (), (), (), ()))
        )

    monkeypatch.setattr(waves, "f_statistic", without)
    text = call(*band)
    assert asked == ["cuda"]
    assert "demod on cuda: 101 templates" in text
    assert "(resampling is computed on the host alone)" in text


def test_profiles(folder, tmp_path):
    """A table on standard error, a trace, and the shares in the summary."""
    common = (
        "--sfts",
        folder / "*.sft",
        "--ref-time",
        "1238256018",
        "--ephemeris",
        "EPV00",
        "--sky",
        "2.0,0.3",
        "--json",
    )
    fstat = json.loads(
        call(
            "fstat",
            *common,
            "--freq",
            60.01,
            "--band",
            0.0002,
            "--step",
            2e-6,
            "--out",
            tmp_path / "o.csv",
            "--profile",
        )
    )
    assert {"input", "compute", "output"} <= set(fstat["profile"]["stages"])
    found = json.loads(
        call("run", *common, "--freq", 60.0095, "--band", 0.0002, "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--out",
             tmp_path / "top.csv", "--quiet", "--profile", tmp_path / "trace.json")
    )  # fmt: skip
    stages = found["profile"]["stages"]
    assert {"input", "setup", "barycentring", "statistic", "Hough", "candidates", "checkpoint", "output"} <= set(stages)
    assert sum(s["share"] for s in stages.values()) == pytest.approx(1.0, abs=1e-9)
    assert stages["search"]["share"] < 0.3  # what none of them claims
    assert json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]


@pytest.mark.parametrize("last", ["_ends_within", "_draw", "_followed", "_summary"])
def test_what_fails_at_the_end_of_a_search_leaves_its_list(folder, tmp_path, monkeypatch, last):
    """Notes, pictures, candidates that are followed up, the summary: the list is there before."""

    def failing(*arguments, **named):
        raise ZeroDivisionError

    words = (
        *("run", "--sfts", folder / "*.sft", "--ref-time", "1238256018", "--ephemeris", "EPV00"),
        *("--sky", "2.0,0.3", "--freq", 60.0095, "--band", 0.0002, "--stack", 36000, "--quiet"),
        *("--residuals", 3, "--patch", 0.02),
    )
    call(*words, "--out", tmp_path / "whole.csv")
    monkeypatch.setattr(search, last, failing)
    more = ("--plot", tmp_path / "a.png") if last == "_draw" else ()
    more += ("--follow-up", 1) if last == "_followed" else ()
    with pytest.raises(ZeroDivisionError):
        call(*words, "--out", tmp_path / "top.csv", *more)
    assert (tmp_path / "top.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_follow_up(folder, tmp_path):
    """A second file, of candidates apart, with parameters that are the signal's; what it is not requested is not there."""
    base = ("run", "--sfts", folder / "*.sft", "--freq", 60.0095, "--band", 0.001, "--sky", "2.0,0.3", "--f1dot", "-2e-10", "--ref-time",
            "1238256018", "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--threshold", 4, "--ephemeris", "EPV00", "--quiet")  # fmt: skip
    text = call(*base, "--out", tmp_path / "top.csv", "--follow-up", 3)
    rows = read(tmp_path / "top.follow-up.csv")
    assert list(rows[0]) == ["rank", "freq", "alpha", "delta", "f1dot", "twoF", "mean_twoF", "false_alarm", "promoted", "templates",
                             "twoF_H1", "twoF_L1"]  # fmt: skip
    assert (rows[0]["promoted"], len(rows[0]["rank"])) == ("1", 2)
    assert abs(float(rows[0]["freq"]) - 60.0101) < 2e-5
    assert float(rows[0]["twoF"]) > 4 * float(rows[0]["mean_twoF"])
    assert "promoted; largest 2F" in text
    assert f"in {tmp_path / 'top.follow-up.csv'}" in text
    summary = json.loads(call(*base, "--out", tmp_path / "b.csv", "--follow-up", 3, "--json"))
    assert summary["follow_up"]["candidates"][0]["twoF"] == float(rows[0]["twoF"])
    assert (tmp_path / "b.follow-up.csv").read_bytes() == (tmp_path / "top.follow-up.csv").read_bytes()
    assert json.loads(call(*base, "--out", tmp_path / "c.csv", "--json"))["follow_up"] is None
    assert not (tmp_path / "c.follow-up.csv").exists()
    (tmp_path / "d.follow-up.csv").write_text("mine", encoding="utf-8")
    assert "d.follow-up.csv: the file exists already" in refused(*base, "--out", tmp_path / "d.csv", "--follow-up", 1)
    assert "--follow-up is -1; wanted a number of candidates" in refused(
        *base, "--out", tmp_path / "e.csv", "--follow-up", -1
    )


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--residuals", 0, "residuals is 0; wanted 1 to"),
        ("--resolution", 0, "resolution is 0; wanted above 0"),
        ("--f1dot-step", 0, "f1dot_step is 0; wanted 1e-25 to 1 Hz/s"),
        ("--f1dot", "1e-9,-2e-9", "f1dot_band is -2e-09; wanted 0 to 1 Hz/s"),
        ("--band", -1, "freq_band is -1; wanted 0 to"),
        ("--threshold", -1, "threshold is -1; wanted 0.0001 to 700 of F"),
        ("--stacks", 0, "most_stacks is 0; wanted 1 to"),
        ("--freq", "nan", "freq is nan; wanted above 0"),
        ("--units", 0, "0 work units requested; wanted at least 1"),
        ("--sky", "missing.txt", "--sky is 'missing.txt': there is no such file"),
    ],
)  # fmt: skip
def test_values_that_no_search_has(folder, tmp_path, option, value, message):
    """None of them is taken for one that was left out."""
    base = ["run", "--sfts", folder / "*.sft", "--freq", 60.01, "--band", 0.001, "--sky", "2.0,0.3", "--ref-time", "1238256018",
            "--stack", 36000, "--ephemeris", "EPV00", "--out", tmp_path / "o.csv"]  # fmt: skip
    assert message in refused(*base, option, value)
    assert not list(tmp_path.iterdir())


def test_a_list_that_ends_within_one_significance(folder, tmp_path):
    """A loud signal fills it with cells of one count: a note says so."""
    base = ("run", "--sfts", folder / "*.sft", "--freq", 60.0095, "--band", 0.001, "--sky", "2.0,0.3", "--f1dot", "-2e-10", "--ref-time",
            "1238256018", "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--threshold", 4, "--ephemeris", "EPV00", "--quiet")  # fmt: skip
    for most, notes in ((30, True), (9000, False)):
        done = CliRunner().invoke(
            app, [str(a) for a in (*base, "--candidates", most, "--out", tmp_path / f"{most}.csv")]
        )
        assert done.exit_code == 0
        assert (
            "all 30 candidates have the significance 7.043, and the list ends among those of" in done.stderr
        ) == notes


def test_three_commands_in_a_row(folder, tmp_path):
    """A search, once more with --resume, and with another device: what has ended says so, and keeps its list."""
    out = tmp_path / "top.csv"
    base = ("run", "--sfts", folder / "*.sft", "--freq", 60.0095, "--band", 0.0002, "--sky", "2.0,0.3", "--ref-time", "1238256018",
            "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--ephemeris", "EPV00", "--quiet", "--out", out)  # fmt: skip
    call(*base)
    found = out.read_bytes()
    complete = (
        "the search is complete, and nothing is left to resume; to search again, give --overwrite instead of --resume"
    )
    assert complete in refused(*base, "--resume")
    assert complete in refused(*base, "--resume", "--device", "numpy")
    assert out.read_bytes() == found
    assert not out.with_name("top.csv.units").exists()


def test_a_search_that_ended_after_its_list_goes_on(folder, tmp_path, monkeypatch):
    """Stopped while candidates were followed up: the list is there, and the checkpoints, too."""
    from lanewise.sims.waves.commands import search

    out = tmp_path / "top.csv"
    base = ("run", "--sfts", folder / "*.sft", "--freq", 60.0095, "--band", 0.0002, "--sky", "2.0,0.3", "--ref-time", "1238256018",
            "--stack", 36000, "--residuals", 3, "--patch", 0.02, "--ephemeris", "EPV00", "--quiet", "--out", out)  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(search, "forget", lambda folder, units: (_ for _ in ()).throw(KeyboardInterrupt))
        CliRunner().invoke(app, [str(a) for a in base])
    found = out.read_bytes()
    assert out.with_name("top.csv.units").exists()
    call(*base, "--resume")
    assert out.read_bytes() == found
    assert not out.with_name("top.csv.units").exists()


def test_long_sfts_are_warned_of(tmp_path):
    """Once, on standard error, whatever the command."""
    pytest.importorskip("erfa")
    call("make-data", "--out", tmp_path / "d", "--band", "1399,1401", "--start", "1238166018", "--sfts", 4, "--duration", 3600,
         "--sqrt-s", "1e-23,1e-23")  # fmt: skip
    common = ("--sfts", tmp_path / "d" / "*.sft", "--freq", 1400.0, "--band", 0.0002, "--sky", "2.0,0.3", "--ref-time", "1238166018",
              "--ephemeris", "EPV00", "--json")  # fmt: skip
    for command, more in (("fstat", ("--step", 1e-4)), ("run", ("--stack", 7200, "--patch", 0.001, "--quiet"))):
        done = CliRunner().invoke(
            app, [str(a) for a in (command, *common, *more, "--out", tmp_path / f"{command}.csv")]
        )
        assert done.exit_code == 0
        assert done.stderr.count("warning: SFTs of 3600 s are too long for the rotation of the Earth at 1400 Hz") == 1
        json.loads(done.stdout.splitlines()[-1])


# ---------------------------------------------------------------- what a command reads


def few_files(folder: Path, search: waves.Search) -> list[Path]:
    """SFTs that cover a search and no more, one a file."""
    starts = 1238166018 + 1800 * np.arange(6)
    low, high = waves.search_cover(search, waves.gps_time(starts[0]), waves.gps_time(starts[-1] + 1800), 1800.0)
    spare = (waves.search_margin(search.dterms) + 1) / 1800
    made = waves.make_data(
        dict.fromkeys(("H1", "L1"), starts), (low - spare, high + spare), sqrt_s={"H1": 1e-23, "L1": 1e-23}
    )
    paths = []
    for n, start in enumerate(starts):
        first = waves.gps_time(start)
        paths += waves.write_sfts(folder, made.between(first, first + 1), f"part{n}")
    return paths


def a_few(**more: float) -> waves.Search:
    given = {
        "freq": 60.0,
        "freq_band": 1e-3,
        "f1dot": -1e-8,
        "f1dot_band": 0.0,
        "reference": waves.gps_time(1238166018),
    }
    return waves.Search(**{**given, "stack": 5400.0, "residuals": 1, "patch": (0.01, 0.01), **more})


@pytest.mark.parametrize("years", [-30, -9, -1, 0, 1, 9])
def test_a_command_reads_what_a_search_needs(years, tmp_path):
    """At any reference time, from where the frequency has drifted out of the bins that the files have."""
    pytest.importorskip("erfa")
    search = a_few(reference=waves.gps_time(1238166018 + 31_557_600 * years))
    few_files(tmp_path, search)
    job = Job(sfts=(str(tmp_path / "*.sft"),), search=search, sky=((1.2, 0.3),), ephemeris="EPV00")
    grids, expected = job.load().grids, waves.set_up(waves.load_sfts(tmp_path / "*.sft"), search)
    np.testing.assert_array_equal(grids.data.data, expected.data.data)
    assert (grids.first, grids.frequencies, len(grids.data)) == (expected.first, expected.frequencies, 12)


@pytest.mark.parametrize("place", range(8, 48))
def test_what_a_damaged_header_says_is_not_used(place, tmp_path):
    """Whichever byte of it is damaged: the others are searched, as if the file were not there."""
    pytest.importorskip("erfa")
    bad = few_files(tmp_path, a_few())[5]
    raw = bytearray(bad.read_bytes())
    raw[place] ^= 0x11
    bad.write_bytes(raw)
    job = Job(sfts=(str(tmp_path / "*.sft"),), search=a_few(), sky=((1.2, 0.3),), ephemeris="EPV00", skip_bad=True)
    ready = job.load()
    assert {x.path for x in ready.left_out} == {bad}
    assert len(ready.grids.data) == 11
    bad.unlink()
    np.testing.assert_array_equal(ready.grids.data.data, job.load().grids.data.data)


EXTREME = ("5e-324", "1e-300", "1e-13", "-1", "0", "1", "1e30", "1e300", "nan", "inf", "x", "")
NUMBERS = {
    "fstat": ("freq", "band", "step", "f1dot", "f2dot", "ref-time", "dterms"),
    "run": ("freq", "band", "f1dot", "stack", "stacks", "resolution", "f1dot-step", "residuals", "threshold", "patch", "ref-time", "dterms", "candidates",
            "follow-up", "units", "checkpoint-every"),
    "make-data": ("start", "sfts", "duration", "seed", "ref-time"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "option"), [(c, o) for c, options in NUMBERS.items() for o in options])
def test_numbers_at_their_ends(command, option, tmp_path):
    """Of every option: computed, or refused in lanewise's own words, also where it does not fit the others."""
    pytest.importorskip("erfa")
    few_files(tmp_path, a_few())
    common = {
        "sfts": tmp_path / "*.sft",
        "ref-time": 1238166018,
        "ephemeris": "EPV00",
        "out": tmp_path / "o.csv",
        "freq": 60.0,
        "band": 1e-4,
    }
    given = {
        "fstat": {**common, "step": 1e-5, "sky": "2,0.3"},
        "run": {**common, "stack": 3600, "patch": 0.001, "residuals": 1, "sky": "2,0.3", "candidates": 3},
        "make-data": {"out": tmp_path / "d", "band": "60,60.01", "start": 1238166018, "sfts": 2, "signal": SIGNAL, "ephemeris": "EPV00"},
    }[command]  # fmt: skip
    for value in EXTREME:
        arguments = [command, *(f"--{k}={v}" for k, v in {**given, option: value}.items())]
        done = CliRunner().invoke(app, [*arguments, "--overwrite"])
        raised = done.exception
        assert raised is None or isinstance(raised, LanewiseError | SystemExit), (value, raised)
        assert done.exit_code in (0, 1, 2), (value, done.output)
