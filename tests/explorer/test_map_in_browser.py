"""The explorer's map in a real browser, under the page's policy: renderers, mouse and keys."""

from __future__ import annotations

import base64
import contextlib
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Polygon

WEB = Path(__file__).resolve().parents[2] / "web"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'"
)
PAGE = (
    '<!doctype html><link rel="stylesheet" href="map.css">'
    '<script type="module" src="map.js"></script>'
)
WIDTH, HEIGHT = 420, 320

#: Levels of 255 by which blended edges of the two renderers may differ.
TOLERANCE = 8

pytestmark = pytest.mark.skipif(
    not (WEB / "node_modules").exists(), reason="needs what `make web` installs"
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Build the page of maps."""
    folder = tmp_path_factory.mktemp("map")
    command = [
        "npx",
        "vite",
        "build",
        "--mode",
        "map",
        "--outDir",
        str(folder),
        "--logLevel",
        "warn",
    ]
    subprocess.run(command, cwd=WEB, check=True)
    return {name: (folder / name).read_text(encoding="utf-8") for name in ("map.js", "map.css")} | {
        "": PAGE
    }


@pytest.fixture(scope="module", params=["webgl2", "canvas"])
def renderer(request):
    """Name a renderer."""
    return request.param


@pytest.fixture
def open_maps(browser, bundle):
    """Open pages with maps of given rows; an error or a breach of the policy fails the test."""
    kinds = {"js": "text/javascript", "css": "text/css", "": "text/html"}
    problems = []
    with contextlib.ExitStack() as pages:

        def serve(route):
            name = route.request.url.removeprefix("http://maps.test/")
            headers = {
                "content-type": kinds[name.rpartition(".")[2]],
                "content-security-policy": POLICY,
            }
            route.fulfill(body=bundle[name], headers=headers) if name in bundle else route.fulfill(
                status=204
            )

        def opened(rows, renderer, *, count=1, ratio=1, **given):
            context = browser.new_context(
                device_scale_factor=ratio, viewport={"width": 1300, "height": 900}
            )
            pages.callback(context.close)
            page = context.new_page()
            page.on(
                "console",
                lambda message: (
                    message.type in ("error", "warning") and problems.append(message.text)
                ),
            )
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.route("http://maps.test/**", serve)
            page.goto("http://maps.test/")
            values = {name: np.asarray(value).tolist() for name, value in rows.items()}
            page.evaluate(
                "(given) => show(given)", {"count": count, "renderer": renderer, **values, **given}
            )
            wait_until_drawn(page, renderer)
            return page

        yield opened
    # the test reads pixels back and says so; nothing else may be said
    assert [
        text for text in problems if "willReadFrequently" not in text and "ReadPixels" not in text
    ] == []


def make_rows(n=3000):
    """Rows around five places, with every state and class."""
    random = np.random.default_rng(0)
    colour = np.arange(n) % 60
    return {
        "x": (2 * np.cos(colour) + random.normal(size=n)).astype(np.float32),
        "y": (np.sin(colour) + random.normal(size=n)).astype(np.float32),
        "colour": colour,
        "state": random.choice([0, 1, 2, 3, 5, 6, 7], size=n),
    }


def wait_until_drawn(page, kind):
    """Wait until every map was drawn by a renderer."""
    wait_until(
        page,
        """(kind) => [...document.querySelectorAll('canvas.mf-points')]
            .every((each) => each.dataset.renderer === kind)""",
        kind,
    )


def wait_until(page, condition, given=None):
    """Wait until a function of the page says yes; playwright's own waiting needs `unsafe-eval`."""
    for _ in range(500):
        if page.evaluate(condition, given):
            return
        page.wait_for_timeout(20)
    pytest.fail(f"never came true: {condition}")


def picture(page, index=0):
    """Pixels of a map's points over white."""
    text = page.evaluate("(index) => pixels(index)", index)
    pixels = np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, 4).astype(float)
    return pixels[:, :3] * pixels[:, 3:] / 255 + 255 - pixels[:, 3:]


def last_told(page, kind):
    """What maps have told last of a kind."""
    wait_until(page, "(kind) => told.some(([name]) => name === kind)", kind)
    return page.evaluate("(kind) => told.findLast(([name]) => name === kind)", kind)[1:]


def places(page, rows):
    """Where rows lie, in pixels of the window."""
    view = page.evaluate("view()")
    box = page.locator(".mf-map").bounding_box()
    assert view is not None, "the test has to choose a view first"
    across = box["x"] + WIDTH / 2 + (rows["x"].astype(float) - view["x"]) * view["scale"]
    upwards = view["scale"] * view.get("stretch", 1)
    down = box["y"] + HEIGHT / 2 - (rows["y"].astype(float) - view["y"]) * upwards
    return np.column_stack([across, down])


@pytest.mark.parametrize("ratio", [1, 2])
def test_both_renderers_draw_the_same_pixels(open_maps, ratio):
    rows = make_rows()
    first, second = (picture(open_maps(rows, kind, ratio=ratio)) for kind in ("webgl2", "canvas"))
    assert first.shape == (WIDTH * HEIGHT * ratio**2, 3)
    assert (first < 250).any(axis=1).mean() > 0.05
    apart = np.abs(first - second).max(axis=1)
    # a middle on the border of two pixels may be rounded either way: one marker in a thousand
    assert (apart > TOLERANCE).sum() <= 3 * 25 * ratio**2


def test_hidden_rows_are_not_drawn(open_maps, renderer):
    rows = make_rows() | {"state": np.zeros(3000, dtype=int)}
    assert (picture(open_maps(rows, renderer)) == 255).all()


def test_a_lost_context_is_drawn_on_the_cpu_and_comes_back(open_maps):
    page = open_maps(make_rows(), "webgl2", count=2)
    before = picture(page, 1)
    page.evaluate("""() => {
        const shared = globalThis[Symbol.for('marginfold.explorer.gl.1')];
        globalThis.loss = shared.program().gl.getExtension('WEBGL_lose_context');
        loss.loseContext();
    }""")
    wait_until_drawn(page, "canvas")
    assert (np.abs(picture(page, 1) - before).max(axis=1) > TOLERANCE).sum() <= 75
    page.evaluate("() => loss.restoreContext()")
    wait_until_drawn(page, "webgl2")
    # a canvas that was read moves from the GPU's memory: premultiplied colours are rounded anew
    np.testing.assert_allclose(picture(page, 1), before, rtol=0, atol=1)


def test_twenty_four_maps_share_one_context(open_maps):
    page = open_maps(make_rows(500), "webgl2", count=24)
    first = picture(page, 0)
    assert (first < 250).any()
    for index in (7, 15, 16, 23):
        np.testing.assert_array_equal(picture(page, index), first)


def test_the_wheel_zooms_at_the_pointer_and_a_drag_moves_rows_with_it(open_maps, renderer):
    rows = make_rows()
    page = open_maps(rows, renderer)
    page.mouse.move(200, 150)
    page.mouse.wheel(0, -300)
    wait_until(page, "() => view() !== null")
    before = places(page, rows)
    page.mouse.move(100, 100)
    page.mouse.down()
    page.mouse.move(120, 130)
    page.mouse.move(160, 90)
    page.mouse.up()
    np.testing.assert_allclose(
        places(page, rows) - before, np.broadcast_to([60, -10], before.shape), atol=1e-6
    )
    page.mouse.move(210, 140)
    scale = page.evaluate("view().scale")
    before = places(page, rows)
    page.mouse.wheel(0, -300)
    wait_until(page, "(scale) => view().scale > 1.2 * scale", scale)
    factor = page.evaluate("view().scale") / scale
    np.testing.assert_allclose(
        places(page, rows) - [210, 140], factor * (before - [210, 140]), atol=1e-6
    )


def test_two_fingers_zoom_what_lies_between_them(open_maps, renderer):
    rows = make_rows()
    page = open_maps(rows, renderer)
    touch = page.context.new_cdp_session(page)

    def put(kind, *fingers):
        points = [{"x": x, "y": y, "id": index} for index, (x, y) in enumerate(fingers)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    put("touchStart", (150, 150))
    put("touchStart", (150, 150), (250, 150))
    put("touchMove", (149, 150), (251, 150))
    wait_until(page, "() => view() !== null")
    scale, before = page.evaluate("view().scale"), places(page, rows)
    put("touchMove", (99, 170), (301, 170))
    put("touchEnd")
    factor = page.evaluate("view().scale") / scale
    assert factor == pytest.approx(202 / 102, rel=1e-2)
    moved = [200, 170] + factor * (before - [200, 150])
    np.testing.assert_allclose(places(page, rows), moved, atol=1)
    assert page.evaluate("told.every(([name]) => name !== 'pick')")


def test_hover_and_click_find_the_nearest_visible_row(open_maps, renderer):
    rows = make_rows()
    page = open_maps(rows, renderer)
    page.mouse.move(200, 150)
    page.mouse.wheel(0, -400)
    wait_until(page, "() => view() !== null")
    at = np.where((rows["state"] % 4 > 0)[:, None], places(page, rows), np.inf)
    for target in [(150, 120), (230, 170), (260, 90)]:
        expected = int(np.hypot(*(at - target).T).argmin())
        page.mouse.move(*target)
        assert last_told(page, "hover") == [expected]
        page.mouse.click(*target)
        assert last_told(page, "pick") == [expected]


def test_a_lasso_selects_the_visible_rows_inside(open_maps, renderer):
    rows = make_rows()
    page = open_maps(rows, renderer)
    page.mouse.move(200, 150)
    page.mouse.wheel(0, -200)
    wait_until(page, "() => view() !== null")
    corners = [(100, 80), (300, 60), (320, 220), (200, 140), (90, 250)]
    page.keyboard.down("Shift")
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner)
    page.mouse.up()
    page.keyboard.up("Shift")
    ids, how = last_told(page, "lasso")
    inside = Polygon([*corners, corners[0]], closed=True).contains_points(places(page, rows))
    assert ids == np.flatnonzero(inside & (rows["state"] % 4 > 0)).tolist()
    assert how == "replace"
    assert len(ids) > 100


def test_keys_move_zoom_pin_and_select(open_maps, renderer):
    rows = make_rows()
    page = open_maps(rows, renderer)
    page.keyboard.press("Tab")
    page.keyboard.press("+")
    wait_until(page, "() => view() !== null")
    before = places(page, rows)
    page.keyboard.press("ArrowRight")
    wait_until(page, "(x) => view().x > x", page.evaluate("told[0][1].x"))
    moved = places(page, rows) - before
    assert (moved[:, 0] < 0).all()
    assert np.ptp(moved) == pytest.approx(-moved[0, 0], abs=1e-6)
    visible = rows["state"] % 4 > 0
    at = np.where(visible[:, None], places(page, rows), np.inf)
    box = page.locator(".mf-map").bounding_box()
    middle = [box["x"] + WIDTH / 2, box["y"] + HEIGHT / 2]
    page.keyboard.press("Enter")
    assert last_told(page, "pick") == [int(np.hypot(*(at - middle).T).argmin())]
    page.keyboard.press("s")
    shown = (np.abs(places(page, rows) - middle) < [WIDTH / 2, HEIGHT / 2]).all(axis=1) & visible
    assert last_told(page, "lasso") == [np.flatnonzero(shown).tolist(), "replace"]
    page.keyboard.press("Escape")
    wait_until(page, "() => told.findLast(([name]) => name === 'lasso')[1].length === 0")
    page.keyboard.press("0")
    wait_until(page, "() => view() === null")


def test_names_are_text_and_regions_lie_under_the_points(open_maps, renderer):
    regions = {"grid": [0, 1, 2, 3], "width": 2, "height": 2, "extent": [-9, 9, -9, 9]}
    page = open_maps(make_rows(), renderer, regions=regions)
    assert page.locator(".mf-anchor").text_content() == "<b>first</b>"
    assert page.locator(".mf-map b").count() == 0
    corners = page.evaluate("""() => {
        const canvas = document.querySelector('canvas.mf-regions');
        const context = canvas.getContext('2d');
        const { width, height } = canvas;
        const at = (x, y) => context.getImageData(x * width | 0, y * height | 0, 1, 1).data.join();
        return [at(0.3, 0.3), at(0.7, 0.3), at(0.3, 0.7), at(0.7, 0.7)];
    }""")
    assert len(set(corners)) == 4
    layers = page.evaluate(
        "Array.from(document.querySelector('.mf-map').children, (each) => each.classList[1])"
    )
    assert layers == ["mf-regions", "mf-points", "mf-over"]
