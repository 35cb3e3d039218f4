"""The explorer in a real browser, over the server that ``marginfold explore`` starts."""

from __future__ import annotations

import ast
import re
import time

import numpy as np
import pandas
import pytest
from browsers import Screen, busy_share, explored, inside
from sklearn.datasets import load_wine

from marginfold.explorer.fits import Rows, held_out_error
from marginfold.explorer.methods import estimator_of
from marginfold.explorer.table import Table, open_table

WINE = Table.of(open_table("wine"))
HELD_OUT = int(WINE.held_out.sum())


@pytest.fixture(scope="module")
def browser(launch):
    """A browser without WebGL, in which pages are drawn sooner than with one in software."""
    return launch(gl=False)


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """The command on a bundled set."""
    with explored(tmp_path_factory.mktemp("explored"), "wine") as found:
        yield found


@pytest.fixture
def look(browser, process):
    """Open pages, each with storage of its own; nothing may be said on their consoles."""
    screens, contexts = [], []

    def opened(address=process.address, browser=browser, **how):
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}} | how)
        contexts.append(context)
        screens.append(Screen.of(context))
        screens[-1].page.goto(address)
        return screens[-1]

    yield opened
    for context in contexts:
        context.close()
    assert [problem for screen in screens for problem in screen.problems] == []


@pytest.fixture
def wine(look):
    """A page with the first two maps of the bundled set."""
    screen = look()
    screen.wait_for("PCA", "LSVA")
    return screen


def placed(method, table=WINE, **settings):
    """Coordinates of all rows by a fit to the training rows, without the explorer."""
    estimator = estimator_of(method, table.size, settings)
    training = ~table.held_out
    return estimator.fit(table.encoded[training], table.labels[training]).transform(table.encoded)


def held_out_rows(count=12):
    """Some rows that are drawn, with their numbers in the file."""
    rows = np.flatnonzero(WINE.held_out)[:count].tolist()
    return {row: int(WINE.row_numbers[row]) for row in rows}


# Tables ------------------------------------------------------------------------------------------


def test_a_bundled_set_opens_with_two_maps_and_both_errors_beside_each(wine):
    assert wine.page.locator("h1").inner_text() == "wine"
    for number in (1, 2):
        rates = wine.card(number).locator(".rates").inner_text()
        assert f"of {HELD_OUT} rows" in rates
        assert "seen by the fit" in rates


def test_a_table_opens_by_dropping_it_and_its_target_can_be_changed(look):
    frame = load_wine(as_frame=True).frame.rename(columns={"target": "grape"})
    frame["ash kind"] = np.where(frame["ash"] > frame["ash"].median(), "much", "little")
    frame["id"] = np.arange(len(frame)) + 1000
    screen = look()
    screen.wait_for("PCA", "LSVA")
    screen.button("Open another table").click()
    screen.drop("flaschen.csv", frame.to_csv(index=False).encode())
    screen.page.locator("h1", has_text="flaschen.csv").wait_for()
    screen.wait_for("PCA", "LSVA")
    assert screen.page.locator(".reasons strong").all_text_contents() == ["id"]
    screen.page.get_by_label("Target").select_option("ash kind")
    screen.page.locator(".legend .name", has_text="little").wait_for()
    screen.wait_for("PCA", "LSVA")
    assert screen.page.locator(".legend .name").all_inner_texts() == ["little", "much"]


def test_the_command_opens_a_csv(look, tmp_path):
    file = tmp_path / "wine.csv"
    load_wine(as_frame=True).frame.to_csv(file, index=False)
    with explored(tmp_path, str(file), "-t", "target") as command:
        screen = look(command.address)
        screen.wait_for("PCA", "LSVA")
        assert screen.page.locator("canvas[data-renderer=canvas]").count() == 2
        screen.button("Open another table").click()
        screen.button("iris").click()
        screen.page.locator("h1", has_text="iris").wait_for()
        screen.wait_for("PCA", "LSVA")


# Maps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "method"), [(1, "PCA"), (2, "LSVA")])
def test_rows_are_drawn_where_transform_puts_them(wine, number, method):
    *_, arrays = next(found for found in wine.frames("fit") if found[1]["method"] == method)
    Z = placed(method)
    np.testing.assert_allclose(arrays["coordinates"], Z, rtol=0, atol=1e-6 * np.abs(Z).max())
    wine.select_all()
    wine.places(number, Z, held_out_rows())


def test_training_rows_are_drawn_behind_a_switch_only(wine):
    wine.select_all()
    numbers = WINE.row_numbers
    assert wine.selected() == set(numbers[WINE.held_out].tolist())
    wine.page.get_by_role("switch").check()
    wine.select_all()
    assert wine.selected() == set(numbers.tolist())
    assert "Open: seen by the fit" in wine.page.locator(".legend").inner_text()
    wine.page.get_by_role("switch").uncheck()
    assert wine.selected() == set(numbers[WINE.held_out].tolist())


def test_a_lasso_selects_in_all_maps_and_in_the_table(wine):
    Z = placed("LSVA")
    wine.select_all()
    places = wine.places(2, Z, held_out_rows())
    wine.page.get_by_role("button", name="Let the pinned row go").click()
    wine.button("Clear").click()
    before = wine.map(1).screenshot()
    corners = wine.corners(2)
    box = wine.map(2).bounding_box()
    places += [box["x"], box["y"]]
    wine.lasso(corners)
    wine.page.locator(".rowtable h2").wait_for()
    expected = WINE.row_numbers[inside(corners, places) & WINE.held_out]
    assert 5 < len(expected) < HELD_OUT - 5
    assert wine.selected() == set(expected.tolist())
    assert wine.map(1).screenshot() != before


def test_a_class_that_is_hidden_is_neither_drawn_nor_selected(wine):
    legend = wine.page.locator(".legend button").first
    name = legend.locator(".name").inner_text()
    assert name in wine.map(1).locator(".mf-anchor").all_text_contents()
    legend.click()
    assert legend.get_attribute("aria-pressed") == "false"
    assert name not in wine.map(1).locator(".mf-anchor").all_text_contents()
    wine.select_all()
    others = WINE.held_out & (WINE.codes != 0)
    assert wine.selected() == set(WINE.row_numbers[others].tolist())


def test_hover_shows_the_row_with_what_moves_it_and_a_click_keeps_it(wine):
    wine.select_all()
    row, name = list(held_out_rows().items())[3]
    at = wine.marked(1, name)
    wine.page.get_by_role("button", name="Let the pinned row go").click()
    box = wine.map(1).bounding_box()
    at = [at[0] + box["x"], at[1] + box["y"]]
    wine.page.mouse.move(at[0] + 0.4, at[1])
    card = wine.page.locator(".rowcard")
    card.locator(".loadings tbody tr").first.wait_for()
    assert f"Row {name}" in card.inner_text()
    assert WINE.cells(np.array([row]))[0][0] in card.inner_text()
    wine.page.mouse.click(*at)
    wine.page.mouse.move(5, 5)
    assert f"Row {name}" in card.inner_text()


def test_the_slider_moves_rows_to_where_the_fit_at_that_weight_puts_them(wine):
    slider = wine.card(2).locator(".path input[type=range]")
    slider.wait_for()
    wine.select_all()
    slider.focus()
    for _ in range(4):
        wine.page.keyboard.press("ArrowRight")
    wine.page.wait_for_function("() => !document.querySelector('.busy')")
    weight = wine.frames("path_map")[-1][1]["params"]["graph_weight"]
    assert wine.card(2).locator(".path output").inner_text() == f"{weight:.3g}"
    Z = placed("LSVA", graph_weight=weight)
    wine.places(2, Z, held_out_rows())
    _, body, arrays = wine.frames("path")[-1]
    step = int(np.abs(np.array(body["weights"]) - weight).argmin())
    low, high = arrays["low"][step], arrays["high"][step]
    drawn = low + (high - low) * arrays["steps"][step] / 65535
    signs = np.sign((drawn * Z[:, :2]).sum(axis=0))
    np.testing.assert_allclose(drawn, signs * Z[:, :2], atol=1e-4 * np.ptp(Z))


def test_every_method_can_be_chosen_and_a_third_map_added(wine):
    for method in ("LDA", "WSVDA", "MarginMap", "KPCA"):
        wine.choose(1, method)
        wine.wait_for(method, "LSVA")
    wine.button("Add a map").click()
    wine.wait_for("KPCA", "LSVA", "PCA")
    wine.button("Remove map 1").click()
    wine.wait_for("LSVA", "PCA")


def test_axes_regions_and_the_shuffled_graph_are_drawn(wine):
    card = wine.card(2)
    card.get_by_role("button", name="Axes", exact=True).click()
    card.get_by_label("LSVA 2 across").check()
    assert card.locator(".mf-axes text").all_text_contents()[0] == "LSVA 2 →"
    card.get_by_role("button", name="Regions", exact=True).click()
    card.locator(".tool select").select_option("GESVC")
    card.locator(".mf-regions").wait_for()
    assert "Its error on held-out rows" in card.locator(".tool").inner_text()
    card.get_by_role("button", name="Graph test", exact=True).click()
    card.get_by_role("button", name="Draw it with a shuffled graph").click()
    card.locator(".ghost canvas.mf-points").wait_for()
    assert re.search(r"graph", card.locator(".tool p").inner_text())


def test_both_renderers_place_the_same_rows(look, launch, process):
    other = launch(gl=True)
    screens = [look(f"{process.address}&renderer={kind}", other) for kind in ("webgl2", "canvas")]
    kinds = []
    for screen in screens:
        screen.wait_for("PCA", "LSVA")
        kinds.append(screen.page.locator("canvas.mf-points").first.get_attribute("data-renderer"))
        screen.lasso(screen.corners(1))
        screen.page.locator(".rowtable h2").wait_for()
    assert kinds == ["webgl2", "canvas"]
    assert screens[0].selected() == screens[1].selected() != set()


# Labels, scripts, files --------------------------------------------------------------------------


def test_labels_are_edited_on_training_rows_counted_and_taken_back(wine):
    wine.select_all()
    wine.page.locator(".relabel summary").click()
    assert "labels are locked" in wine.page.locator(".relabel").inner_text()
    wine.page.get_by_role("switch").check()
    wine.lasso(wine.corners(1))
    wine.page.locator(".relabel select").select_option("1")
    wine.button("Relabel and fit again").click()
    notice = wine.page.locator(".edited")
    notice.wait_for()
    wine.wait_for("PCA", "LSVA")
    words = notice.inner_text()
    assert re.match(r"\d+ labels edited after looking", words)
    changed = int(words.split()[0])
    legend = sum(map(int, wine.page.locator(".legend button .quiet").all_inner_texts()))
    assert legend == len(WINE.labels)
    assert 0 < changed < len(WINE.labels) - HELD_OUT
    wine.button("Undo").click()
    notice.wait_for(state="detached")
    Z, end = placed("LSVA"), time.monotonic() + 30
    while True:
        again = [a for _, body, a in wine.frames("fit") if body["method"] == "LSVA"]
        if np.allclose(again[-1]["coordinates"], Z, rtol=0, atol=1e-6 * np.abs(Z).max()):
            break
        assert time.monotonic() < end, f"{len(again)} fits, and the last is not that of before"
        wine.page.wait_for_timeout(100)


def test_the_copied_script_gives_what_is_on_the_screen(look):
    screen = look(permissions=["clipboard-read", "clipboard-write"])
    screen.wait_for("PCA", "LSVA")
    screen.choose(1, "WSVDA")
    screen.wait_for("WSVDA", "LSVA")
    screen.button("Copy as Python").click()
    screen.button("Copy").click()
    screen.button("Copied").wait_for()
    names: dict = {}
    exec(screen.page.evaluate("navigator.clipboard.readText()"), names)
    np.testing.assert_array_equal(names["held_out"], WINE.held_out)
    for method, Z in zip(("WSVDA", "LSVA"), names["coordinates"], strict=True):
        drawn = [a for _, body, a in screen.frames("fit") if body["method"] == method][-1]
        np.testing.assert_allclose(drawn["coordinates"], Z, rtol=0, atol=1e-6 * np.abs(Z).max())


def test_a_map_of_the_method_before_says_that_the_next_one_is_under_way(wine):
    held = []
    wine.page.route("**/api/plan", lambda route: route.continue_() if held else held.append(route))
    wine.choose(1, "WSVDA")
    wine.card(1).locator(".over .busy").wait_for()
    while not held:
        wine.page.wait_for_timeout(10)
    held[0].continue_()
    wine.wait_for("WSVDA", "LSVA")
    assert "WSVDA" in {body["method"] for _, body, _ in wine.frames("fit")}


def test_files_are_saved_and_say_the_same_as_the_map(wine, tmp_path):
    wine.card(2).get_by_role("button", name="Export", exact=True).click()
    saved = {}
    for title in ("Coordinates (CSV)", "Picture (SVG)", "Picture (PNG)", "Model (skops)"):
        with wine.page.expect_download() as waiting:
            wine.card(2).get_by_role("button", name=title).click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        saved[file.suffix] = file
    found = pandas.read_csv(saved[".csv"])
    Z = placed("LSVA")
    np.testing.assert_allclose(found.filter(like="LSVA").to_numpy(), Z, atol=1e-6 * np.abs(Z).max())
    assert saved[".png"].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in saved[".svg"].read_text(encoding="utf-8")
    assert saved[".skops"].stat().st_size > 1000


def test_a_place_without_a_row_says_which_row_would_stand_there(wine):
    box = wine.map(1).bounding_box()
    wine.page.mouse.move(box["x"] + 0.95 * box["width"], box["y"] + 0.5 * box["height"])
    table = wine.page.locator(".rowcard .image tbody tr")
    table.first.wait_for()
    params, body, _ = wine.frames("preimage")[-1]
    assert params["axes"] == [0, 1]
    pca = placed("PCA")
    assert params["at"][0] > pca[WINE.held_out, 0].max()
    shown = [row.split("\t")[:2] for row in table.all_inner_texts()]
    assert shown == [[each["name"], each["value"]] for each in body["columns"]]


def save_page(screen, folder):
    """Export the maps of a page as one file."""
    screen.card(2).locator(".path input[type=range]").wait_for()
    screen.card(2).get_by_role("button", name="Export", exact=True).click()
    with screen.page.expect_download() as waiting:
        screen.card(2).get_by_role("button", name="Page (HTML)").click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def test_one_file_works_without_a_server_and_asks_nobody(wine, look, tmp_path):
    file = save_page(wine, tmp_path)
    alone = look(file.as_uri(), offline=True)
    alone.wait_for("PCA", "LSVA")
    alone.select_all()
    assert alone.selected() == set(WINE.row_numbers[WINE.held_out].tolist())
    alone.page.get_by_role("switch").check()
    alone.lasso(alone.corners(1))
    alone.page.locator(".rowtable h2").wait_for()
    among = alone.selected()
    assert among - set(WINE.row_numbers[WINE.held_out].tolist())
    assert among < set(WINE.row_numbers.tolist())
    name = max(alone.listed())
    at = alone.marked(1, name)
    before = alone.map(2).locator(".mf-pinned").get_attribute("cx")
    alone.card(2).locator(".path input[type=range]").focus()
    alone.page.keyboard.press("End")
    assert alone.card(2).locator(".path output").inner_text() == "100"
    assert alone.map(2).locator(".mf-pinned").get_attribute("cx") != before
    alone.page.get_by_role("button", name="Let the pinned row go").click()
    alone.map(1).scroll_into_view_if_needed()
    box = alone.map(1).bounding_box()
    alone.page.mouse.move(at[0] + box["x"] + 0.3, at[1] + box["y"])
    alone.page.locator(".rowcard h2", has_text=f"Row {name}").wait_for()
    assert alone.page.locator(".rowcard .cells td").count() > 3
    moved = alone.page.locator(".rowcard .loadings tbody tr th")
    moved.first.wait_for()
    assert set(moved.all_inner_texts()) <= {str(column) for column in WINE.frame.columns}
    alone.card(1).get_by_role("button", name="Axes", exact=True).click()
    alone.card(1).get_by_label("PCA 4 up").check()
    rows = Rows(WINE.encoded, WINE.labels, WINE.held_out)
    error = str(held_out_error(placed("PCA")[:, [0, 3]], rows))
    alone.card(1).locator(".rates dd", has_text=error).first.wait_for()
    assert alone.requests == [file.as_uri()]


# Hostile tables ----------------------------------------------------------------------------------

EVIL = "<script>document.title='hit'</script><img src=x onerror=\"document.title='hit'\">"


def hostile_table():
    random = np.random.default_rng(0)
    frame = pandas.DataFrame(random.normal(size=(90, 3)), columns=[f"{EVIL}{k}" for k in range(3)])
    frame[f"kind of {EVIL}"] = [f"</style></script>{EVIL}{k % 2}" for k in range(90)]
    frame[f"'\"><b>target {EVIL}"] = [f"{EVIL} class {k % 3}" for k in range(90)]
    frame.iloc[:, 0] += np.arange(90) % 3
    return frame.to_csv(index=False).encode()


def test_a_table_of_scripts_is_shown_as_text(look, tmp_path):
    screen = look()
    screen.wait_for("PCA", "LSVA")
    screen.button("Open another table").click()
    screen.drop(f"{EVIL}.csv", hostile_table())
    screen.page.locator("h1", has_text="onerror").wait_for()
    screen.wait_for("PCA", "LSVA")
    pages = [screen, look(save_page(screen, tmp_path).as_uri(), offline=True)]
    for page in pages:
        page.wait_for("PCA", "LSVA")
        page.select_all()
        page.page.locator(".rowtable tbody tr").first.wait_for()
        page.page.locator(".rowtable .link").first.click()
        page.page.locator(".rowcard .cells").wait_for()
        assert page.page.locator("h1").inner_text() == f"{EVIL}.csv"
        assert "hit" not in page.page.title().replace("='hit'", "")
        assert page.page.locator("img, b").count() == 0
        shown = page.page.locator(".legend .name").all_inner_texts()
        assert shown == [f"{EVIL} class {k}" for k in range(3)]
    screen.button("Copy as Python").click()
    text = screen.page.locator("dialog[open] pre").inner_text()
    parts = [each.value for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Constant)]
    assert f"'\"><b>target {EVIL}" in parts


# Long fits and other tabs ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_table():
    """A table on which MarginMap takes about eight seconds: many rows and nothing to find."""
    random = np.random.default_rng(0)
    frame = pandas.DataFrame(random.normal(size=(12000, 6)).round(3))
    frame["kind"] = random.choice(list("abcdef"), 12000)
    return frame.to_csv(index=False).encode()


def begin_long_fit(screen, table):
    """Open a table and begin a fit that takes many seconds."""
    screen.button("Open another table").click()
    screen.drop("long.csv", table)
    screen.page.locator("h1", has_text="long.csv").wait_for()
    screen.wait_for("PCA", "LSVA")
    screen.choose(1, "MarginMap")
    screen.card(1).locator(".plot .busy").wait_for()
    start = screen.card(1).get_by_role("button", name="Fit now")
    if start.count():
        start.click()


def wait_until_busy(process):
    end = time.monotonic() + 10
    while busy_share(process, 0.3) < 0.2:
        assert time.monotonic() < end, "the fit does not run"


def wait_until_idle(process, seconds):
    """Wait until nothing is computed any more; return how long that took."""
    began = time.monotonic()
    while busy_share(process, 0.3) > 0.1:
        assert time.monotonic() - began < seconds, "the fit goes on"
    return time.monotonic() - began


def test_a_long_fit_is_cancelled_and_the_map_before_stays(wine, process, long_table):
    begin_long_fit(wine, long_table)
    wait_until_busy(process)
    wine.card(1).get_by_role("button", name="Cancel").click()
    wait_until_idle(process, 3)
    assert "This map is of the settings before." in wine.card(1).inner_text()
    wine.choose(1, "LDA")
    wine.wait_for("LDA", "LSVA")


def test_closing_the_page_ends_its_fit(wine, process, long_table):
    begin_long_fit(wine, long_table)
    wait_until_busy(process)
    wine.page.close()
    wait_until_idle(process, 3)


def test_two_tabs_do_not_disturb_each_other(wine, look):
    other = look()
    other.wait_for("PCA", "LSVA")
    other.button("Open another table").click()
    other.button("iris").click()
    other.page.locator("h1", has_text="iris").wait_for()
    wine.page.get_by_role("switch").check()
    wine.select_all()
    wine.page.locator(".relabel summary").click()
    wine.button("Relabel and fit again").click()
    alert = wine.page.locator(".relabel [role=alert]")
    alert.filter(has_text="two classes").wait_for()
    wine.lasso(wine.corners(1))
    wine.button("Relabel and fit again").click()
    wine.page.locator(".edited").wait_for()
    other.wait_for("PCA", "LSVA")
    assert other.page.locator(".edited").count() == 0
    assert other.page.locator(".rowtable").count() == 0
    assert wine.page.locator("h1").inner_text() == "wine"
    third = look()
    third.wait_for("PCA", "LSVA")
    assert third.page.locator("h1").inner_text() == "wine"
    assert third.page.locator(".edited").count() == 0


# Everybody ---------------------------------------------------------------------------------------

FOCUSABLE = (
    "button:not([disabled]), select:not([disabled]), input:not([disabled]), summary, [tabindex='0']"
)


def test_the_tab_key_reaches_every_control_and_the_maps(wine):
    for card in (1, 2):
        wine.card(card).get_by_role("button", name="Axes", exact=True).click()
    wine.select_all()
    wine.page.locator(".rowtable tbody tr").first.wait_for()
    wanted = wine.page.evaluate(
        """(focusable) => {
            const shown = [...document.querySelectorAll(focusable)].filter((each) =>
                each.checkVisibility() && !(each.type === 'radio' && !each.checked));
            shown.forEach((each, at) => (each.dataset.stop = at));
            document.activeElement.blur();
            return shown.length;
        }""",
        FOCUSABLE,
    )
    reached = set()
    for _ in range(wanted + 5):
        wine.page.keyboard.press("Tab")
        stop = wine.page.evaluate("document.activeElement?.dataset.stop ?? null")
        reached.add(stop)
    missed = wine.page.evaluate(
        """(reached) => [...document.querySelectorAll('[data-stop]')]
            .filter((each) => !reached.includes(each.dataset.stop))
            .map((each) => each.outerHTML)""",
        list(reached),
    )
    assert missed == []
    assert wanted > 40


def test_the_keyboard_alone_hides_slides_selects_and_pins(wine):
    wine.page.locator(".legend button").first.focus()
    wine.page.keyboard.press("Enter")
    assert wine.page.locator(".legend button").first.get_attribute("aria-pressed") == "false"
    wine.page.get_by_role("switch").focus()
    wine.page.keyboard.press("Space")
    wine.map(1).focus()
    wine.page.keyboard.press("+")
    wine.page.keyboard.press("ArrowLeft")
    wine.page.keyboard.press("Enter")
    wine.page.locator(".rowcard.pinned").wait_for()
    spoken = wine.page.locator("[role=status]")
    assert re.match(r"Row \d+ pinned", spoken.inner_text())
    wine.page.keyboard.press("s")
    assert re.match(r"\d+ rows selected", spoken.inner_text())
    wine.page.keyboard.press("Escape")
    assert spoken.inner_text() == "Nothing selected"


@pytest.mark.parametrize("width", [390, 768, 2560])
def test_nothing_is_wider_than_the_window(look, width):
    screen = look(viewport={"width": width, "height": 844})
    screen.wait_for("PCA", "LSVA")
    screen.card(2).locator(".path input[type=range]").wait_for()
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    screen.select_all()
    screen.page.locator(".rowtable tbody tr").first.wait_for()
    for words in ("Axes", "Settings", "Export"):
        screen.card(2).get_by_role("button", name=words, exact=True).click()
        assert screen.page.evaluate(overflow) <= 0
    for summary in screen.page.locator(".header .fold summary").all():
        summary.click()
        sheet = summary.locator("xpath=..").locator(".sheet").bounding_box()
        assert sheet["x"] >= 0
        assert sheet["x"] + sheet["width"] <= width
        screen.page.keyboard.press("Escape")
    assert screen.map(1).bounding_box()["width"] > 0.3 * min(width, 1000)
    screen.button("Open another table").click()
    assert screen.page.evaluate(overflow) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(look, scheme):
    screen = look(color_scheme=scheme)
    screen.wait_for("PCA", "LSVA")
    screen.select_all()
    screen.page.locator(".rowtable tbody tr").first.wait_for()
    contrasts = screen.page.evaluate(CONTRASTS)
    ground = screen.page.evaluate(GROUND)
    assert (ground < 0.1) == (scheme == "dark")
    low = {text: found for text, found in contrasts if found < 4.5}
    assert low == {}


LUMINANCE = """
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const linear = (level) => {
        const share = level / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    const luminance = (colour) => {
        const [red, green, blue] = rgba(colour).map(linear);
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const behind = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (rgba(colour)[3] === 255) return colour;
        }
        return 'Canvas';
    };
"""
"""WCAG's relative luminance, and the colour behind an element."""

GROUND = f"() => {{ {LUMINANCE} return luminance(behind(document.querySelector('.frame'))); }}"

CONTRASTS = f"""() => {{ {LUMINANCE}
    const kinds = 'h1, h2, p, span, dt, dd, th, td, button, summary, label';
    const words = [...document.querySelectorAll(kinds)];
    return words.filter((each) => each.checkVisibility() && !each.disabled &&
        [...each.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim())
    ).map((each) => {{
        const [a, b] = [luminance(getComputedStyle(each).color), luminance(behind(each))];
        const name = `${{each.className}} ${{each.textContent.slice(0, 30)}}`;
        return [name, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    }});
}}"""
"""The contrast of each text with what is behind it."""
