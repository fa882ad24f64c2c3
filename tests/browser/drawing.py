"""Rules for tasks of shapes, colours and dragging: what a snapshot says of drawings, clicks at points, drags."""

import colorsys
import math
import re
import time

from page import Failed

DRAWING = {}


def task(*names):
    def add(function):
        for name in names:
            DRAWING[name] = function
        return function

    return add


def submit(page):
    page.click(page.one("button", "Submit"))


NAMED = {"red": "ff0000", "green": "008000", "blue": "0000ff", "aqua": "00ffff", "black": "000000"}
NAMED.update({"magenta": "ff00ff", "yellow": "ffff00", "lime": "00ff00", "white": "ffffff", "purple": "800080"})


def fill(element):
    named = element.attribute("fill")
    return NAMED.get(named, named or element.color)


def shapes(page, *tags):
    found = [e for e in page.elements if e.ref and e.tag in (tags or KINDS)]
    return found


KINDS = {"circle": "circle", "rect": "rectangle", "polygon": "triangle", "text": "letter"}


def described(page, text):
    """The shapes of a description such as `small red triangle`, `large 4`, `item`."""
    words = text.strip(" .?").split()
    found = [e for e in shapes(page) if e.ref and e.attribute("id") != "shape-container"]
    for word in words:
        if word in {"small", "large"}:
            found = [e for e in found if (e.box[3] > 15) == (word == "large")]
        elif word in NAMED:
            found = [e for e in found if fill(e) == NAMED[word]]
        elif word in {"circle", "rectangle", "triangle"}:
            found = [e for e in found if KINDS[e.tag] == word]
        elif word == "digit":
            found = [e for e in found if e.name.isdigit()]
        elif word == "letter":
            found = [e for e in found if e.name.isalpha()]
        elif len(word) == 1:
            found = [e for e in found if e.name == word]
    return found


@task("ascending-numbers")
def ascending(page):
    numbers = sorted((e for e in page.all(tag="text")), key=lambda e: int(e.name))
    first = numbers[0]
    page.click(first)
    page.look()
    covers = sorted(page.all(tag="rect"), key=lambda e: int(e.attribute("data-index")))
    for cover in covers:
        page.click(cover)


def points(page, color=None):
    return [e.middle for e in shapes(page, "circle") if color is None or e.attribute("fill") == color]


def paper(page):
    return page.one(tag="svg")


def click_at(page, element, x, y):
    """Clicks a point of an element, by its upper left corner."""
    return page.click(element, x=round(x, 1), y=round(y, 1))


def within(point, size):
    return 4 <= point[0] <= size[0] - 4 and 4 <= point[1] <= size[1] - 4


def toward(start, direction, size):
    """The furthest point from a start in a direction or its opposite that is on the paper."""
    length = math.hypot(*direction)
    unit = direction[0] / length, direction[1] / length
    for distance in (60, 45, 30, 20, 12):
        point = start[0] + unit[0] * distance, start[1] + unit[1] * distance
        if within(point, size):
            return point
    raise Failed("no room")


@task("bisect-angle")
def bisect(page):
    sheet = paper(page)
    (corner,), (a, b) = points(page, "blue"), points(page, "black")
    arms = [((p[0] - corner[0]), (p[1] - corner[1])) for p in (a, b)]
    units = [(x / math.hypot(x, y), y / math.hypot(x, y)) for x, y in arms]
    direction = units[0][0] + units[1][0], units[0][1] + units[1][1]
    click_at(page, sheet, *toward(corner, direction, sheet.box[2:]))
    submit(page)


@task("right-angle")
def right_angle(page):
    sheet = paper(page)
    (corner,), (end,) = points(page, "blue"), points(page, "black")
    x, y = end[0] - corner[0], end[1] - corner[1]
    for direction in ((-y, x), (y, -x)):
        try:
            point = toward(corner, direction, sheet.box[2:])
        except Failed:
            continue
        click_at(page, sheet, *point)
        return submit(page)
    raise Failed("no room")


@task("circle-center")
def center(page):
    sheet = paper(page)
    click_at(page, sheet, *points(page)[0])
    submit(page)


@task("find-midpoint")
def midpoint(page):
    sheet = paper(page)
    a, b = points(page)[:2]
    click_at(page, sheet, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    submit(page)


@task("grid-coordinate")
def coordinate(page):
    x, y = re.search(r"\((-?\d+),(-?\d+)\)", page.query).groups()
    page.click(page.one(rest=re.compile(rf"id=\({x},{y}\)")))


@task("click-color")
def color_box(page):
    boxes = page.all("clickable", rest=re.compile("class=color data-color"))
    named = re.search(r"on the (\w+) colored box", page.query)
    if named:
        return page.click(next(b for b in boxes if b.attribute("data-color") == named[1]))
    wanted = page.one(rest=re.compile("query-color")).color
    page.click(next(b for b in boxes if b.color == wanted))


@task("click-shades")
def shades(page):
    wanted = re.search(r"shades of (\w+)", page.query)[1]
    hues = {"red": 0, "green": 1 / 3, "blue": 2 / 3}

    def name(color):
        hue = colorsys.rgb_to_hsv(*(int(color[n:n + 2], 16) / 255 for n in (0, 2, 4)))[0]
        return min(hues, key=lambda h: min(abs(hue - hues[h]), 1 - abs(hue - hues[h])))

    for shade in page.all("clickable", tag="span"):
        if shade.color and name(shade.color) == wanted:
            page.click(shade)
    submit(page)


@task("click-shape")
def shape(page):
    page.click(described(page, re.search(r"Click on an? (.*)", page.query)[1])[0])


@task("count-shape")
def count(page):
    wanted = re.search(r"How many (.*?)s? are there", page.query)[1]
    page.click(page.one("button", str(len(described(page, wanted)))))


@task("identify-shape")
def identify(page):
    found = shapes(page)[0]
    kind = KINDS[found.tag]
    if kind == "letter" and found.name.isdigit():
        kind = "number"
    page.click(page.one("button", kind.capitalize()))


STEPS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


@task("drag-circle", "drag-single-shape")
def drag_way(page):
    x, y = STEPS[re.search(r"\b(left|right|up|down)\b", page.query)[1]]
    page.click(shapes(page, "circle", "rect", "polygon")[0], drag_by=[x * 24, y * 24])
    submit(page)


@task("drag-box")
def drag_box(page):
    page.click(page.one(name="s"), drag_to=page.one(name="L").ref)
    submit(page)


@task("drag-shapes")
def drag_shapes(page):
    kind = re.search(r"Drag all (\w+?)s? into", page.query)[1]
    box = page.one(rest=re.compile("shape-container"))
    drop(page, described(page, kind), box)
    submit(page)


@task("drag-shapes-2")
def drag_shapes_apart(page):
    wanted = re.search(r"Drag all (.*?) into", page.query)[1]
    word = wanted.replace(" shapes", "").removesuffix("s")
    left, right = sorted(page.all(rest=re.compile("shape-container")), key=lambda e: e.box[0])
    chosen = {e.ref for e in described(page, word)}
    movable = [e for e in shapes(page) if "shape-container" not in e.rest]
    drop(page, [e for e in movable if e.ref in chosen], left)
    drop(page, [e for e in movable if e.ref not in chosen], right)
    submit(page)


def drop(page, items, box):
    """Drags shapes to places beside each other in a box, so that none covers another."""
    left, top, width, height = box.box
    columns = max(1, int(width // 20))
    for nth, item in enumerate(items):
        x = left + 12 + nth % columns * (width - 24) / max(1, columns - 1)
        y = top + 12 + nth // columns * (height - 24) / 2
        page.click(item, drag_by=[x - item.middle[0], y - item.middle[1]])


@task("drag-items")
def drag_items(page):
    items = page.all("listitem")
    name = re.search(r"Drag (\w+) ", page.query)[1]
    at = next(n for n, e in enumerate(items) if e.name == name)
    words = page.query
    place = re.search(r"(\d+)(?:st|nd|rd|th) position", words)
    to = int(place[1]) - 1 if place else {"top": 0, "bottom": len(items) - 1}.get(words.split()[-1].strip("."))
    if to is None:
        to = at + (1 if "down" in words else -1)
    move(page, items, at, to)


def move(page, items, at, to):
    """Drags an item of a list over another one, so that it takes its place."""
    height = page.all("listitem")[0]
    step = item_height(page, height)
    page.click(items[at], drag_by=[0, (to - at) * step + (4 if to > at else -4)])


def item_height(page, item):
    whole = page.all("list")
    if whole:
        return whole[0].box[3] / max(1, len(page.all("listitem")))
    return 28


@task("drag-items-grid")
def drag_grid(page):
    items = page.all("listitem")
    name = re.search(r"Drag (\w+) ", page.query)[1]
    at = next(n for n, e in enumerate(items) if e.name == name)
    words = page.query
    rows, columns = {"top": 0, "center": 1, "bottom": 2}, {"left": 0, "center": 1, "right": 2}
    one = re.search(r"(up|down|left|right) by one", words)
    if one:
        x, y = STEPS[one[1]]
        to = at + x + 3 * y
    else:
        where = re.search(r"to the (.*?)\.?$", words)[1].split()
        where = where if len(where) == 2 else [where[0], where[0]]
        to = rows[where[0]] * 3 + columns[where[1]]
    # A little further than its place, so that it goes before the item there, or after it.
    further = 8 if to > at else -8
    left, top = to % 3 - at % 3, to // 3 - at // 3
    page.click(items[at], drag_by=[left * 44 + further, top * 44 + further])


@task("drag-sort-numbers")
def sort_numbers(page):
    up = "increasing" in page.query
    for _ in range(8):
        items = page.look().all("listitem")
        values = [int(e.name) for e in items]
        wanted = sorted(values, reverse=not up)
        if values == wanted:
            return submit(page)
        at = next(n for n in range(len(values)) if values[n] != wanted[n])
        move(page, items, values.index(wanted[at]), at)
    raise Failed("not sorted")


@task("draw-line")
def draw_line(page):
    sheet, (x, y) = paper(page), points(page)[0]
    width, height = sheet.box[2:]
    if "vertical" in page.query:
        start, by = (x, 8), (0, height - 16)
    else:
        start, by = (8, y), (width - 16, 0)
    page.click(sheet, x=start[0], y=start[1], drag_by=by)
    submit(page)


@task("chase-circle")
def chase(page):
    while time.monotonic() - page.begun < 12:
        circle = page.all(tag="circle")
        if page.all(name="START") or not circle:
            return
        page.click(circle[0], button="none")
        page.look()
