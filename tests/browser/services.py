"""Rules for tasks that play an application: mail, messages, flights, a terminal, guesses."""

import re

from page import Failed

SERVICES = {}


def task(*names):
    def add(function):
        for name in names:
            SERVICES[name] = function
        return function

    return add


def quoted(text):
    return [t.strip() for t in re.findall(r"'([^']*)'", text)]


def open_mail(page, sender):
    page.click(page.one("clickable", re.compile(rf"^{re.escape(sender)} ")))
    page.wait(lambda p: p.all(rest=re.compile("close-email")))


@task("email-inbox", "email-inbox-delete", "email-inbox-forward", "email-inbox-important", "email-inbox-noscroll")
@task("email-inbox-reply", "email-inbox-star-reply")
def mail(page):
    sender = re.search(r"email by (\w+)", page.query)[1]
    handle(page, sender, page.query)


def handle(page, sender, what):
    open_mail(page, sender)
    if "star" in what or "important" in what:
        page.click(page.one(rest=re.compile("class=star")))
    elif "trash" in what or "delete" in what.lower():
        page.click(page.one(rest=re.compile("class=trash")))
    elif "reply" in what.lower():
        reply(page, re.search(r"'\s*(.*?)\s*'", what)[1])
    else:
        forward(page, re.search(r"to (\w+)\s*\.?$", what)[1])


def reply(page, text):
    page.click(page.one(name="Reply"))
    page.wait(lambda p: p.all(rest=re.compile("send-reply")))
    page.type(page.one("textbox", rest=re.compile("reply-text")), text)
    page.click(page.one(rest=re.compile("send-reply")))


def forward(page, to):
    page.click(page.one(name="Forward"))
    page.wait(lambda p: p.all(rest=re.compile("send-forward")))
    page.type(page.one("textbox", rest=re.compile("forward-sender")), to)
    page.click(page.one(rest=re.compile("send-forward")))


@task("email-inbox-forward-nl", "email-inbox-forward-nl-turk", "email-inbox-nl-turk")
def free_mail(page):
    query = page.query
    senders = {e.name.split(" ")[0] for e in page.all("clickable") if ".." in e.name or len(e.name.split()) > 1}
    named = [w for w in re.findall(r"\w+", query) if w[0].isupper()]
    sender = [n for n in named if n in senders]
    lower = query.lower()
    texts = re.findall(r"'\s*(.*?)\s*'(?!\w)", query)
    if re.search(r"\b(delete|trash|remove)\b", lower):
        return handle(page, sender[0], "delete")
    if re.search(r"\b(star|important|mark)\b", lower):
        return handle(page, sender[0], "star")
    if texts and not re.search(r"forward|send .* to|give ", lower) or "reply" in lower or "respond" in lower:
        open_mail(page, sender[0])
        return reply(page, max(texts, key=len))
    by = re.search(
        r"(?:from|by|of|received from|sent by) (\w+)|(\w+)'s? (?:e-?mail|message)|(?:e-?mail|message) (\w+) sent",
        query,
    )
    source = next(n for n in by.groups() if n) if by else sender[0]
    other = [n for n in named if n != source and n.lower() not in COMMON]
    open_mail(page, source)
    forward(page, other[-1])


COMMON = {"forward", "please", "send", "give", "the", "email", "find", "i", "share", "pass", "navigate", "locate"}
COMMON |= {"message", "can", "you", "mail", "open", "deliver", "to", "from", "get", "let", "show", "resend", "relay"}


def posts(page):
    """The posts of a page: who wrote each, and its buttons by their class."""
    found, who = [], None
    for element in page.elements:
        name = re.search(r"@\w+", element.name)
        if not element.role and name and element.name != page.query:
            who = (name[0], {})
            found.append(who)
        elif who and element.ref and element.role in {"image", "clickable"}:
            who[1].setdefault(element.attribute("class") or element.name, element)
    return found


@task("social-media")
def post(page):
    user = re.search(r"@\w+", page.query)[0]
    action = quoted(page.query)[0]
    buttons = next(buttons for who, buttons in posts(page) if who == user)
    if action.lower() in buttons:
        return page.click(buttons[action.lower()])
    page.click(buttons["more"])
    name = re.compile(rf"^{re.escape(action)}( @\w+)?$")
    page.click(page.wait(lambda p: p.all({"clickable", "listitem"}, name))[0])


@task("social-media-all", "social-media-some")
def all_posts(page):
    user = re.search(r"@\w+", page.query)[0]
    action = quoted(page.query)[0].lower()
    count = re.search(r"on (\d+) posts?", page.query)
    mine = [buttons[action] for who, buttons in posts(page) if who == user]
    for button in mine[: int(count[1]) if count else None]:
        page.click(button)
    page.click(page.one("button", "Submit"))


@task("book-flight", "book-flight-nodelay")
def flight(page):
    from solvers import pick_date

    origin, to = re.search(r"from: (.*?) to: (.*?) on ", page.query).groups()
    for name, city in (("From:", origin), ("To:", to)):
        page.type(page.one("textbox", name), city)
        entries = page.wait(lambda p, city=city: [e for e in p.all({"listitem", "clickable"}) if city in e.name])
        page.click(entries[0])
        page.look()
    pick_date(page, page.one("textbox", nth=2), page.query)
    page.click(page.one("button", "Search"))
    page.wait(lambda p: p.all("button", re.compile("Book flight")))
    offers, minutes = [], 0
    for element in page.elements:
        length = re.search(r"(\d+)h (\d+)m", element.name)
        if length:
            minutes = int(length[1]) * 60 + int(length[2])
        price = re.search(r"Book flight for \$(\d+)", element.name)
        if price:
            offers.append((int(price[1]), minutes, element))
    key = 0 if "cheapest" in page.query else 1
    page.click(min(offers, key=lambda o: o[key])[2])


@task("buy-ticket")
def ticket(page):
    offers, minutes = [], 0
    for element in page.elements:
        length = re.search(r"(\d+)h (\d+)m", element.name)
        if length:
            minutes = int(length[1]) * 60 + int(length[2])
        price = re.search(r"\$(\d+)", element.name)
        if price and element.ref:
            offers.append((int(price[1]), minutes, element))
    query = page.query.lower()
    key = 1 if "duration" in query or "short" in query or "long" in query else 0
    best = max if re.search("most|longest|expensive", query) and "least" not in query else min
    page.click(best(offers, key=lambda o: o[key])[2])


@task("stock-market")
def stock(page):
    limit = float(re.search(r"\$([\d.]+\d)", page.query)[1])

    def low(page):
        prices = [re.search(r"price: \$([\d.]+)", t) for t in page.texts()]
        return any(p and float(p[1]) < limit for p in prices)

    page.wait(low, 9)
    page.click(page.one("button", "Buy"))


@task("terminal")
def terminal(page):
    field = page.one("textbox")
    ending = re.search(r"extension (\.[\w.]+)", page.query)

    def enter(line):
        # This terminal listens to keys, not to its field.
        page.click(field)
        for key in line:
            page.press("Space" if key == " " else key)
        page.press("Enter")
        page.look()

    enter("ls")
    words = [w for e in page.elements for w in e.name.split()]
    words = words[words.index("ls") + 1:]
    words = words[: words.index("user$")]
    fits = [w for w in words if w.endswith(ending[1]) if ending] if ending else [w for w in words if "." not in w]
    enter(f"rm {fits[0]}")


@task("guess-number")
def guess(page):
    low, high = 0, 9
    while low <= high:
        middle = (low + high) // 2
        page.type(page.one("spinbutton"), middle)
        page.click(page.one("button", "Submit"))
        page.look()
        if page.all(name="START"):
            return
        said = " ".join(page.texts()[1:]).lower()
        if "higher" in said or "greater" in said:
            low = middle + 1
        elif "lower" in said or "less" in said:
            high = middle - 1
        else:
            raise Failed(f"no hint: {said}")


@task("generate-number")
def generate(page):
    query = page.query
    limit = re.search(r"than (\d+)", query)

    def good(number):
        if limit:
            return number < int(limit[1]) if "less" in query else number > int(limit[1])
        return number % 2 == (1 if "odd" in query else 0)

    for _ in range(25):
        page.click(page.one("button", "Generate"))
        numbers = [t for t in page.look().texts()[1:] if re.fullmatch(r"-?\d+", t)]
        if numbers and good(int(numbers[0])):
            return page.click(page.one("button", "Submit"))
    raise Failed("no such number came")


@task("find-greatest")
def greatest(page):
    cards = [e for e in page.all("clickable") if re.fullmatch(r"-?\d+", e.name)]
    page.click(max(cards, key=lambda c: int(c.name)))
    page.click(page.one("button", "Submit"))


@task("phone-book")
def contact(page):
    name, what = re.search(r"Find (.*?) in the contact book and click on their (\w+)", page.query).groups()
    for _ in range(14):
        if any(e.role.startswith("heading") and e.name == name for e in page.elements):
            break
        page.click(page.one("link", ">"))
        page.look()
    label = ""
    for element in page.elements:
        if not element.role:
            label = element.name.strip(":").lower()
        elif element.ref and label == what.lower():
            return page.click(element)
    raise Failed("not found")


@task("search-engine")
def search(page):
    wanted = quoted(page.query)[0]
    place = int(re.search(r"(\d+)(?:st|nd|rd|th) search result", page.query)[1])
    page.type(page.one("textbox"), wanted)
    page.click(page.one("button", "Search"))
    numbers = re.compile(r"^(\d+|<|>|«|»|<<|>>|First|Last)$")
    while True:
        page.look()
        results = [e for e in page.all("link") if not numbers.search(e.name)]
        if place <= len(results):
            return page.click(results[place - 1])
        place -= len(results)
        page.click(page.one("link", ">"))
