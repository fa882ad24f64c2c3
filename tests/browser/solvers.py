"""Rules that solve tasks of MiniWoB: clicking, typing, forms, lists, dates. Each takes the page of a begun episode."""

import re
import time

from drawing import DRAWING
from page import Failed
from services import SERVICES

# Tasks that take long, since they wait for the clock or go through many pages.
SLOW = {"button-delay", "chase-circle", "stock-market", "choose-date", "book-flight"}
SOLVERS = {**DRAWING, **SERVICES}


def task(*names):
    def add(function):
        for name in names:
            SOLVERS[name] = function
        return function

    return add


def quoted(text):
    """The texts in single quotes."""
    return [t.strip() for t in re.findall(r"'([^']*)'", text)]


def position(text):
    """The place that words such as `2nd` name, from 0."""
    return int(re.search(r"(\d+)(?:st|nd|rd|th)", text)[1]) - 1


def submit(page, name=re.compile("^(Submit|OK|Login)$")):
    page.click(page.one("button", name))


def control(page, name):
    """What a person would click by its name."""
    return page.one(name=name)


@task("click-test", "click-test-2", "click-test-transfer", "click-button", "unicode-test", "click-button-sequence")
def named_buttons(page):
    names = quoted(page.query) or re.findall(r"\b(?:ONE|TWO)\b", page.query)
    if not names:
        return page.click(page.one("button"))
    for name in names:
        page.click(page.one("button", name))


@task("button-delay")
def button_delay(page):
    page.click(page.one("button", "ONE"))
    time.sleep(2.1)
    page.click(page.one("button", "TWO"))


@task("click-link")
def link(page):
    page.click(control(page, quoted(page.query)[0]))


@task("click-dialog")
def dialog(page):
    page.click(page.one("button", "Close"))


@task("click-dialog-2")
def dialog_button(page):
    wanted = quoted(page.query)[0]
    page.click(page.one("button", "Close" if wanted == "x" else wanted))


def chosen(page):
    """The names that a query such as `Select a, b and click Submit` lists."""
    listed = re.search(r"Select (?:words similar to )?(.*?) (?:from the .*list )?and click Submit", page.query)[1]
    return [] if listed == "nothing" else listed.split(", ")


@task("click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer", "click-option")
def boxes(page):
    for name in chosen(page):
        page.click(page.one({"checkbox", "radio"}, name))
    submit(page)


SYNONYMS = """big large huge enormous gigantic; small tiny little mini petite; red scarlet crimson vermillion;
happy cheerful joyful gleeful delighted; sad unhappy sorrowful miserable tragic; angry mad furious irritated;
evil wicked immoral sinful corrupt depraved; wrong incorrect mistaken erroneous; real genuine actual;
strange odd peculiar unusual weird; stop cease halt end finish; scared terrified panicked fearful frightened afraid;
quiet calm peaceful serene mild; old aged archaic; love like adore favor; kill murder assassinate;
keep retain preserve sustain maintain; hide conceal camouflage; hate despise loathe detest dislike;
funny humorous amusing comical laughable; fat fleshy plump chubby; stupid dumb dull unwise;
delicious savory delectable appetizing; cut slice carve chop; brave courageous fearless; begin start initiate launch;
answer reply response; television televisions TV TVs; house home houses homes; fire flame fires flames;
pig pork swine; rabbit rabbits bunny bunnies; car cars automobile automobiles vehicle vehicles; water"""


@task("click-checkboxes-soft")
def similar_boxes(page):
    groups = [set(group.split()) for group in SYNONYMS.split(";")]
    for word in chosen(page):
        group = next(g for g in groups if word in g)
        page.click(page.one("checkbox", group))
    submit(page)


@task("choose-list", "click-scroll-list")
def options(page):
    for name in chosen(page):
        option = page.one("option", name)
        if "selected" not in option.rest:
            page.click(option)
    submit(page)


@task("click-collapsible", "click-collapsible-nodelay")
def section(page):
    page.click(page.one("tab", re.compile("^Section")))
    page.wait(lambda p: p.all("button", "Submit"))
    # The section is still opening, and its button moves.
    for _ in range(3):
        try:
            return page.click(page.look().one("button", "Submit"))
        except Failed as error:
            why = error
    raise why


@task("click-collapsible-2", "click-collapsible-2-nodelay", "click-tab-2", "click-tab-2-easy", "click-tab-2-medium")
@task("click-tab-2-hard")
def hidden_link(page):
    wanted = quoted(page.query)[0]
    for tab in page.all("tab"):
        if "expanded" not in tab.rest:
            page.click(tab)
            page.look()
        found = page.all("clickable", wanted)
        if found:
            return page.click(found[0])
    raise Failed("not found")


@task("click-tab")
def tab(page):
    page.click(page.one("tab", re.search(r"Tab #\d", page.query)[0]))


@task("click-menu")
def menu(page):
    path = page.query.split("Select ")[1].split(">")
    for name in path[:-1]:
        entry = page.wait(lambda p, name=name: p.all("menuitem", name))[0]
        page.click(entry, button="none")
        page.look()
    page.click(page.wait(lambda p: p.all("menuitem", path[-1]))[0])


@task("click-widget")
def widget(page):
    wanted = quoted(page.query)[0]
    if wanted in {"text", "textarea"}:
        fields = page.all("textbox")
        page.click(next(f for f in fields if ("multiline" in f.rest) == (wanted == "textarea")))
    else:
        page.click(page.one(wanted))


@task("copy-paste", "copy-paste-2")
def copy(page):
    fields = page.all("textbox")
    at = position(page.query) if "text area below" in page.query else 0
    # By the keyboard, as a person does: a snapshot squeezes spaces.
    page.click(fields[at])
    page.press("Control+a")
    page.press("Control+c")
    page.click(fields[-1])
    page.press("Control+v")
    submit(page)


@task("enter-text", "enter-text-dynamic")
def text(page):
    page.type(page.one("textbox"), quoted(page.query)[0])
    submit(page)


@task("enter-text-2")
def text_case(page):
    word = quoted(page.query)[0]
    page.type(page.one("textbox"), word.upper() if "upper" in page.query else word.lower())
    submit(page)


@task("enter-password")
def password(page):
    for field in page.all("textbox"):
        page.type(field, quoted(page.query)[0])
    submit(page)


@task("enter-date")
def date(page):
    month, day, year = re.search(r"(\d+)/(\d+)/(\d+)", page.query).groups()
    page.type(page.one("Date"), f"{year}-{month}-{day}")
    submit(page)


@task("enter-time")
def clock(page):
    hour, minute, half = re.search(r"(\d+):(\d+) (AM|PM)", page.query).groups()
    hour = int(hour) % 12 + (12 if half == "PM" else 0)
    page.type(page.one("Time"), f"{hour:02}:{minute}")
    submit(page)


@task("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
def calendar(page):
    pick_date(page, page.one("textbox"), page.query)
    submit(page)


MONTHS = "January February March April May June July August September October November December".split()


def pick_date(page, field, text):
    month, day, _ = (int(n) for n in re.search(r"(\d+)/(\d+)/(\d+)", text).groups())
    page.click(field)

    def shown(page):
        titles = [t.split(" ")[0] for t in page.texts()]
        return [MONTHS.index(t) + 1 for t in titles if t in MONTHS]

    page.look()
    while True:
        now = page.wait(shown)[0]
        if now == month:
            break
        page.click(page.one("link", "Prev" if now > month else "Next"))
        page.look()
    page.click(page.one("link", str(day)))
    page.look()


@task("find-word")
def word(page):
    words = re.sub(r"[^A-Za-z ]", "", page.texts()[1]).split()
    page.type(page.one("textbox"), words[position(page.query)])
    submit(page)


@task("focus-text", "focus-text-2")
def focus(page):
    page.click(page.one("textbox", nth=position(page.query) if "input" in page.query else 0))


@task("form-sequence-2")
def form_radio(page):
    first, second = re.findall(r"(\d)(?:st|nd|rd)", page.query)
    page.click(page.one("radio", nth=int(first) - 1))
    page.type(page.one("textbox", nth=int(second) - 1), quoted(page.query)[0])
    submit(page)


@task("form-sequence-3")
def form_list(page):
    wanted = re.search(r"Choose (.*?) from", page.query)[1]
    if not page.all("option"):
        raise Failed("no list")
    page.click(page.one(name=re.compile("▾|▼")) if page.all(name=re.compile("▾|▼")) else page.one("clickable"))
    entries = page.wait(lambda p: p.all({"clickable", "listitem"}, wanted))
    page.click(entries[0])
    page.click(page.look().one("button", quoted(page.query)[0]))


@task("login-user", "login-user-popup")
def login(page):
    name, secret = quoted(page.query)
    for nth, value in enumerate((name, secret)):
        page.type(page.one("textbox", nth=nth), value)
        # Something may open over the form, to be sent away.
        page.look()
        for button in page.all({"button", "clickable"}, re.compile("(?i)^(cancel|no|close|exit|x)$")):
            page.click(button)
            page.look()
    submit(page)


@task("multi-layouts", "multi-orderings")
def film(page):
    genre, director, year = re.search(
        r"Search for (.*?) movies directed by (.*?) from year (\d+)", page.query
    ).groups()
    values = {"genre": genre, "director": director, "year": year}
    labels = [e for e in page.elements if e.name.strip(":").lower() in values or e.role == "textbox"]
    label = ""
    for element in labels:
        if element.role == "textbox":
            page.type(element, values.pop((element.name or label).strip(":").lower()))
        else:
            label = element.name
    page.click(page.one(name="Submit"))


@task("navigate-tree")
def tree(page):
    wanted = quoted(page.query)[0]
    opened = set()
    for _ in range(12):
        found = page.all(name=wanted)
        if found:
            return page.click(found[-1])
        closed = [e for e in page.all() if e.ref not in opened and e.name and e.name != "START"]
        if not closed:
            break
        opened.add(closed[0].ref)
        page.click(closed[0])
        page.look()
    raise Failed("not found")


@task("odd-or-even")
def odd(page):
    numbers = [int(t) for t in page.texts() if re.fullmatch(r"-?\d+", t)]
    for nth, number in enumerate(numbers):
        page.click(page.one("button", "Odd" if number % 2 else "Even", nth=nth))
    submit(page)


@task("order-food")
def order(page):
    wanted = page.query
    listed = re.search(r"Order one of each item: (.*)", wanted)
    quantity = re.search(r"Order (\d+) items? that (?:is|are) (.*)", wanted)
    name, pictures, count = "", set(), 0
    for element in list(page.elements):
        if not element.role and element.name not in {wanted, ""}:
            name, pictures = element.name, set()
        elif element.role == "image":
            pictures.add(element.name.lower())
        elif element.name == "+":
            if listed and name in listed[1].split(", "):
                page.click(element)
            elif quantity and quantity[2].strip(" .").lower() in pictures and count < int(quantity[1]):
                page.click(element)
                count += 1
    page.click(page.one("button", "Order!"))


@task("read-table")
def table(page):
    label = re.search(r"value of (.*?) into", page.query)[1]
    page.type(page.one("textbox"), rows(page)[label])
    submit(page)


def rows(page):
    return dict(e.name.split(" | ", 1) for e in page.elements if e.role == "row" and " | " in e.name)


@task("read-table-2")
def table_form(page):
    values, labels = rows(page), [t.strip(":") for t in page.texts() if t.endswith(":")]
    fields = page.all("textbox")
    for nth, field in enumerate(fields):
        page.type(field, values[field.name.strip(":") or labels[nth]])
    submit(page)


@task("scroll-text")
def last_word(page):
    long, short = page.all("textbox")[:2]
    page.type(short, re.sub(r"[^A-Za-z]", "", long.value.split()[-1]))
    submit(page)


@task("scroll-text-2")
def scroll(page):
    to = "bottom" if "bottom" in page.query else "top"
    page.call("scroll", ref=page.one("textbox").ref, to=to)
    submit(page)


@task("sign-agreement")
def agreement(page):
    if "enter the name" in page.query:
        name, button = quoted(page.query)
        page.call("scroll", ref=page.one("textbox").ref, to="bottom")
        page.wait(lambda p: "disabled" not in p.one("textbox", nth=1).rest)
        page.type(page.one("textbox", nth=1), name)
        page.click(page.look().one("button", button))
    else:
        page.click(page.one("button", "Cancel"))


@task("simple-arithmetic", "simple-algebra")
def sums(page):
    line = next(t for t in page.texts()[1:] if "=" in t).replace("×", "x").strip()
    if "algebra" in line or re.search(r"=\s*-?\d", line):
        left, right = line.split("=")
        left = re.sub(r"(\d)\s*x", r"\1*x", left)
        value = next(n for n in range(-400, 400) if calculate(left.replace("x", f"({n})")) == int(right))
    else:
        value = calculate(line.split("=")[0].replace("x", "*"))
    page.type(page.one("textbox"), value)
    submit(page)


def calculate(text):
    """A sum of whole numbers: digits, signs and brackets only."""
    if not re.fullmatch(r"[\d+\-*() ]+", text):
        raise Failed(f"no sum: {text!r}")
    return eval(text, {"__builtins__": {}})


@task("text-transform")
def transformed(page):
    page.type(page.one("textbox"), "".join(page.texts()[1].split()))
    submit(page)


@task("tic-tac-toe")
def tic_tac_toe(page):
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    cells = page.all(rest=re.compile("id=ttt"))
    for _ in range(5):
        board = [state(c) for c in cells]
        free = [n for n, s in enumerate(board) if not s]
        if not free:
            return

        def finish(who, board=board, free=free):
            return [n for line in lines for n in line if n in free and [board[m] for m in line].count(who) == 2]

        best = finish("X") + finish("O") + [n for n in (4, 0, 2, 6, 8, 1, 3, 5, 7) if n in free]
        page.click(cells[best[0]])
        page.look()
        now = {c.ref: c for c in page.all()}
        cells = [now.get(c.ref, c) for c in cells]
        if page.all(name="START"):
            return


def state(cell):
    if cell.name in {"X", "O"}:
        return cell.name
    found = re.search(r"class=mark-([xo])", cell.rest)
    return found[1].upper() if found else ""


@task("use-autocomplete", "use-autocomplete-nodelay")
def autocomplete(page):
    begins, *ends = quoted(page.query)
    page.type(page.one("textbox"), begins)
    fits = lambda e: e.name.startswith(begins) and (not ends or e.name.endswith(ends[0]))
    entries = page.wait(lambda p: [e for e in p.all({"listitem", "option", "menuitem", "clickable"}) if fits(e)])
    page.click(entries[0])
    submit(page.look())


@task("use-colorwheel")
def color(page):
    names = {"red": "ff0000", "green": "00ff00", "blue": "0000ff", "white": "ffffff", "black": "000000"}
    names.update({"yellow": "ffff00", "magenta": "ff00ff", "cyan": "00ffff", "gray": "808080", "grey": "808080"})
    names.update({"orange": "ffa500", "purple": "800080", "pink": "ffc0cb", "brown": "a52a2a"})
    page.type(page.one("textbox"), names[re.search(r"Select (\w+) with", page.query)[1]])
    page.press("Tab")
    submit(page)


@task("use-slider", "use-slider-2")
def slider(page):
    wanted = [int(n) for n in re.findall(r"-?\d+", page.query)]
    for nth, number in enumerate(wanted):
        slide(page, page.all("clickable", rest=re.compile("slider"))[nth], nth, number)
    submit(page)


def slide(page, track, nth, wanted):
    """Moves a slider by the keyboard, with the number that the page shows below it."""
    numbers = lambda p: [int(t) for t in p.texts()[1:] if re.fullmatch(r"-?\d+", t)]
    page.click(track)
    for _ in range(3):
        now = numbers(page.look())[nth]
        if now == wanted:
            return
        page.press("ArrowRight" if now < wanted else "ArrowLeft", min(abs(wanted - now), 100))


@task("form-sequence")
def form_slider(page):
    wanted = int(re.search(r"Select (-?\d+)", page.query)[1])
    slide(page, page.one("clickable", rest=re.compile("slider")), 0, wanted)
    page.click(page.one("checkbox", nth=position(page.query)))
    submit(page)


@task("use-spinner")
def spinner(page):
    page.type(page.one("spinbutton"), re.search(r"Select (-?\d+)", page.query)[1])
    submit(page)
