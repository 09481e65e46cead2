"""The page in a real browser without network: scripts run, names lead to facts and sources, nothing fails.

Collected only where Chromium is installed; test_graph.py checks the page's structure everywhere.
"""

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from view_programs import aux, deep

from foxhunt.view.page import page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
    "--virtual-time-budget=3000",
)


def dom(path: Path, chosen: str, profile: Path) -> str:
    """The document after its scripts have run, with `chosen` in the address."""
    url = f"{path.resolve().as_uri()}#{quote(chosen)}"
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert 'data-ready="yes"' in done.stdout
    assert "data-error" not in done.stdout.partition("<script")[0]
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "aux.html").write_text(page(aux()))
    (folder / "deep.html").write_text(page(deep(folder, 1000)))
    return folder


if BROWSER:

    @pytest.mark.parametrize(
        ("chosen", "shown"),
        [
            ("TRUNK_WEIGHT_BOUND", ["slot TRUNK_WEIGHT_BOUND of aux", 'class="here"', "n reads near"]),
            ("device:train.forward.l1", ["launch train.forward.l1 of aux", "n on near", "e RAW near"]),
            ("evaluate.forward.l1", ["launch evaluate.forward.l1 of aux", 'data-step="1" aria-label']),
            ("h1", ["buffer h1 of aux", "writes near", 'class="a on" data-name="h1"']),
            ("edge:0:2", ["e RAW near", "<dt>RAW</dt>"]),
            ("edge:0:999", ["Choose a launch"]),
            ("no such thing", ["Choose a launch"]),
        ],
    )
    def test_a_name_in_the_address_is_shown(written, tmp_path, chosen, shown):
        found = dom(written / "aux.html", chosen, tmp_path / "profile").partition(
            '<script type="application'
        )[0]
        for text in shown:
            assert text in found

    def test_clicks_search_keys_and_the_wheel_do_what_they_say(written, tmp_path):
        script = """<script>
          const seen = [], see = (name, value) => seen.push(`${name}=${value}`);
          const mouse = (node, type) => node.dispatchEvent(new PointerEvent(type, { bubbles: true }));
          const click = (node) => { mouse(node, 'pointerdown'); mouse(node, 'pointerup'); };
          const heading = () => document.querySelector('#detail h2')?.textContent;
          document.querySelector('[data-list=slots]').click();
          byId('search').value = 'weight_bound';
          byId('search').dispatchEvent(new Event('input'));
          see('found', all('#list a').length);
          document.querySelector('#list a').click();
          see('slot', heading());
          click(svgs[0].querySelector('[data-n="3"]'));
          see('box', heading());
          all('#files button')[1].click();
          see('emitted', byId('source').textContent.includes('extern "C"'));
          click(svgs[0].querySelector('.e'));
          see('edge', heading());
          const raw = document.querySelector('[data-kind=RAW]');
          raw.click();
          const alone = '.e.RAW:not(.WAR, .WAW, .ORDER)';
          see('hidden', all(`${alone}.off`, svgs[0]).length === all(alone, svgs[0]).length);
          raw.click();
          see('back', all('.e.off', svgs[0]).length);
          const before = views[0].k;
          svgs[0].dispatchEvent(new WheelEvent('wheel', { deltaY: -400, bubbles: true, cancelable: true }));
          see('closer', views[0].k > 2 * before);
          document.dispatchEvent(new KeyboardEvent('keydown', { key: 'f' }));
          see('fitted', Math.abs(views[0].k - before) < 1e-9);
          document.querySelector('#timeline [data-name=h1]').click();
          see('arena', heading());
          byId('scale').click();
          see('scaled', document.querySelector('#timeline .a.on').dataset.name);
          document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
          see('nothing', heading());
          all('#steps button')[1].click();
          see('step', svgs[1].hasAttribute('hidden'));
          document.body.dataset.seen = seen.join(';');
        </script>"""
        path = tmp_path / "clicked.html"
        path.write_text((written / "aux.html").read_text().replace("</body>", script + "</body>"))
        found = dom(path, "", tmp_path / "profile")
        seen = dict(
            pair.split("=", 1) for pair in re.search(r'data-seen="([^"]*)"', found).group(1).split(";")
        )
        assert seen == {
            "found": "2",
            "slot": "slot TRUNK_WEIGHT_BOUND of aux",
            "box": "launch train.forward.l1 of aux",
            "emitted": "true",
            "edge": "train.ingest → train.draw_windows",
            "hidden": "true",
            "back": "0",
            "closer": "true",
            "fitted": "true",
            "arena": "buffer h1 of aux",
            "scaled": "h1",
            "nothing": "undefined",
            "step": "false",
        }

    def test_a_thousand_launches_are_listed_drawn_and_found(written, tmp_path):
        found = dom(written / "deep.html", "train.stage_7.left_377", tmp_path / "profile")
        drawn = found.partition('<script type="application')[0]
        assert drawn.count('class="n') > 1000
        assert drawn.count('role="listitem"') > 1000
        assert "launch train.stage_7.left_377 of deep" in drawn
