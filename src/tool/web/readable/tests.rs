use super::*;

const AT: &str = "https://example.org/docs/page?x=1";

fn read_at(html: &str) -> Readable {
    read(html, &Url::parse(AT).unwrap())
}

fn text(html: &str) -> String {
    read_at(html).text
}

/// The text of a page, in a few ways to mark it.
const TEXT: &str = "<h1>Tides of the bay</h1><p>The tide turns twice a day, and the harbour empties slowly.</p>\
    <h2>Tables</h2><p>See the <a href=\"/tables?year=2026&amp;port=3\">tables of 2026</a> for the hours.</p>\
    <p>Boats wait for high water at the outer pier until noon.</p>";

/// Pages with a place for clutter before the text, in it, and after it.
fn pages(before: &str, inside: &str, after: &str) -> Vec<(&'static str, String)> {
    let other = "<p>Loading</p>";
    let wraps: [(&str, String); 9] = [
        ("main", format!("{before}<main>{TEXT}{inside}</main>{after}")),
        (
            "main in boxes",
            format!("{before}<div id=app><div class=wrap><main>{TEXT}{inside}</main></div>{after}</div>"),
        ),
        ("role main", format!("{before}<div role=main>{TEXT}{inside}</div>{after}")),
        ("article", format!("{before}<article>{TEXT}{inside}</article>{after}")),
        ("article in main", format!("{before}<main>{inside}<article>{TEXT}</article></main>{after}")),
        ("hidden main", format!("{before}<main hidden>{other}</main><main>{TEXT}{inside}</main>{after}")),
        (
            "main behind a dialog",
            format!("{before}<div aria-hidden=true><main>{TEXT}{inside}</main></div>{after}"),
        ),
        (
            "main of a heading",
            format!("{before}<main><h1>Tides</h1></main><article>{TEXT}{inside}</article>{after}"),
        ),
        ("no mark", format!("{before}<div class=content>{TEXT}{inside}</div>{after}")),
    ];
    let page = |body: String| format!("<!doctype html><title>Bay</title><body>{body}</body>");
    wraps.into_iter().map(|(name, body)| (name, page(body))).collect()
}

/// Boxes that are no text; each has the word ZEBRA.
const CLUTTER: &[(&str, &str)] = &[
    (
        "cookie banner",
        "<div class=\"cookie-banner\"><p>ZEBRA We use cookies to give you the best experience on our \
        site. By going on you agree.</p><button>Accept all</button><button>Settings</button></div>",
    ),
    (
        "OneTrust",
        "<div id=onetrust-consent-sdk><div role=region aria-label=\"Cookie banner\"><h2>ZEBRA privacy</h2>\
        <p>We and our 843 partners store cookies.</p><button>Reject all</button></div></div>",
    ),
    (
        "without a name",
        "<div><div><h3>Before you continue</h3><p>ZEBRA uses cookies and data to measure engagement.</p>\
        <p>You can change your mind at any time.</p></div><div><button>Accept all</button><button>Reject all</button></div></div>",
    ),
    (
        "German",
        "<section class=x7><p>ZEBRA verwendet Cookies. Mehr im <a href=/d>Datenschutz</a>.</p>\
        <a role=button href=#>Alle akzeptieren</a></section>",
    ),
    (
        "consent as a dialog",
        "<div role=dialog aria-modal=true><h2>ZEBRA</h2><p>We value you. Choose.</p>\
        <button>OK</button></div>",
    ),
    ("dialog", "<dialog open><p>ZEBRA Would you like to chat with us?</p><button>No</button></dialog>"),
    ("alert dialog", "<div role=alertdialog><p>ZEBRA Turn off your blocker.</p></div>"),
    ("modal by class", "<div class=\"modal\"><p>ZEBRA Get our app.</p></div>"),
    (
        "newsletter",
        "<div class=newsletter-signup><h3>ZEBRA Stay informed</h3><p>Our letter, each week.</p>\
        <form><input type=email name=email><button>Subscribe</button></form></div>",
    ),
    (
        "newsletter without a name",
        "<section><h2>Subscribe to the ZEBRA newsletter</h2><p>Each week in your inbox.</p>\
        <form><input type=email><button>Sign up</button></form></section>",
    ),
    ("navigation", "<nav><ul><li><a href=/z>ZEBRA</a><li><a href=/y>Yak</a></ul></nav>"),
    ("navigation by role", "<div role=navigation><a href=/z>ZEBRA</a></div>"),
    ("search", "<div role=search><label>ZEBRA <input></label></div>"),
    ("hidden", "<div hidden><p>ZEBRA</p></div>"),
    ("not displayed", "<div style=\"display: none\"><p>ZEBRA</p></div>"),
    ("closed dialog", "<dialog><p>ZEBRA</p></dialog>"),
    ("template", "<template><p>ZEBRA</p></template>"),
    ("script and style", "<script>var ZEBRA = '<main>x</main>'</script><style>.ZEBRA{}</style>"),
    ("note without scripts", "<noscript><p>ZEBRA: please enable JavaScript.</p></noscript>"),
    (
        "links aside",
        "<aside><h3>ZEBRA</h3><ul><li><a href=/1>One thing</a><li><a href=/2>Two things</a></ul></aside>",
    ),
];

/// Clutter that stands beside the text only.
const AROUND: &[(&str, &str)] = &[
    ("header", "<header><a href=/>ZEBRA Inc.</a></header>"),
    ("footer", "<footer><p>ZEBRA 2026, all rights reserved.</p></footer>"),
    ("sidebar", "<div class=sidebar><ul><li><a href=/1>ZEBRA one</a><li><a href=/2>Two</a></ul></div>"),
    ("footer by class", "<div id=footer><p>ZEBRA 2026</p></div>"),
];

/// Boxes of many thousand bytes that ask for consent.
fn long_clutter() -> Vec<(&'static str, String)> {
    let purposes = "<h4>ZEBRA Store information on a device</h4><p>Cookies and similar identifiers can be stored or read on your \
        device for one or several of the purposes presented here by our partners.</p>"
        .repeat(25);
    let german =
        "<p>ZEBRA Wir und unsere Partner verarbeiten Daten zu diesen Zwecken, mit Ihrer Einwilligung.</p>"
            .repeat(40);
    let names = (0..400).map(|n| format!("<li>ZEBRA Interactive {n} Ltd</li>")).collect::<String>();
    let ask = "<h2>ZEBRA Your privacy</h2><p>We and our partners use cookies on this site.</p>";
    let (accept, reject) = ("<button>Accept all</button>", "<button>Reject all</button>");
    let save = "<a href=#>Confirm my choices</a>";
    let wall = format!("{ask}{purposes}<div>{accept}{reject}</div>");
    vec![
        ("long banner", format!("<div class=cookie-banner>{wall}</div>")),
        ("long wall by id", format!("<section id=consentWall class=\"x cookie-wall\">{wall}</section>")),
        ("long overlay by class", format!("<div class=\"site-overlay\"><div class=inner>{wall}</div></div>")),
        (
            "long modal with a form",
            format!(
                "<form class=privacy_modal>{ask}{purposes}<input type=submit value=\"I agree\">{save}</form>"
            ),
        ),
        ("long dialog by role", format!("<div role=dialog>{wall}</div>")),
        ("preference center", format!("<div id=onetrust-pc-sdk>{ask}{purposes}{save}{accept}</div>")),
        (
            "list of partners",
            format!("<div class=qc-cmp2-container>{ask}<ul>{names}</ul>{reject}{accept}</div>"),
        ),
        (
            "long layer in German",
            format!(
                "<div id=cookie-layer><p>ZEBRA Wir verwenden Cookies. Datenschutz</p>{german}<a role=button>Alle akzeptieren</a>\
                <a role=button>Alle ablehnen</a></div>"
            ),
        ),
    ]
}

#[test]
fn no_box_stands_in_place_of_the_text_or_in_it() {
    let mut wrong = Vec::new();
    let mut check = |clutter: &str, page: &str, html: &str| {
        let text = text(html);
        let whole = [
            "# Tides of the bay",
            "empties slowly",
            "https://example.org/tables?year=2026&port=3",
            "until noon",
        ]
        .iter()
        .all(|part| text.contains(part));
        if !whole || text.contains("ZEBRA") || text.contains("Loading") {
            wrong.push(format!("{clutter} / {page}:\n{text}"));
        }
    };
    let short = CLUTTER.iter().map(|(clutter, html)| (*clutter, (*html).to_owned()));
    for (clutter, html) in &short.chain(long_clutter()).collect::<Vec<_>>() {
        for (page, html) in pages(html, "", "").iter().chain(&pages("", html, "")).chain(&pages("", "", html))
        {
            check(clutter, page, html);
        }
    }
    for (clutter, html) in AROUND {
        for (page, html) in pages(html, "", "").iter().chain(&pages("", "", html)) {
            check(clutter, page, html);
        }
    }
    let everything: String = CLUTTER.iter().chain(AROUND).map(|(_, html)| *html).collect();
    for (page, html) in pages(&everything, "", &everything) {
        check("everything", page, &html);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn text_that_only_resembles_a_box_stays() {
    for html in [
        "<main><h1>Cookies</h1><p>KEEP A cookie is baked for ten minutes.</p><button>Print</button></main>",
        "<article><div class=cookie-box><p>KEEP our cookie box holds 12 chocolate cookies.</p><a href=/b>Order</a></div></article>",
        "<article class=\"post cookie-policy\"><h1>Cookie policy</h1><p>KEEP we use cookies.</p><a href=/x>Accept them</a></article>",
        "<main><p>KEEP</p><form><input type=email name=email><input type=password><button>Log in</button></form></main>",
        "<main><h1>Contact</h1><p>KEEP write to us.</p><form><input type=email><textarea></textarea></form></main>",
        "<main><h1>A</h1><div class=\"sidebar cookie\"><p>KEEP each cookie needs butter.</p><button>OK</button></div></main>",
        "<main><h1>A</h1><div class=trusted-sellers><p>KEEP we protect personal data.</p><a href=/x>More</a></div></main>",
        "<main><h1>A</h1><div><p>KEEP a cookie of oats, baked at noon.</p><button>OK</button></div></main>",
        "<main><h1>A</h1><a href=/b><img alt=b src=b.png><div class=overlay>KEEP the caption</div></a></main>",
        "<main><h1>A</h1><div class=card><img alt=b src=b.png><div class=overlay>KEEP the caption</div></div></main>",
        "<div role=main><h1>A</h1><aside>KEEP beware of the dog</aside><p>text</p></div>",
        "<div role=dialog><article><h1>Photo</h1><p>KEEP</p></article></div>",
        "<main><h1>Code</h1><div role=tabpanel hidden><pre>KEEP</pre></div></main>",
        "<main><h1>A</h1><details><summary>More</summary><p>KEEP</p></details></main>",
        "<article><header><h1>A</h1><p>KEEP by Ann</p></header><p>text</p></article>",
        "<main><h1>Q</h1><h3><button>KEEP the question</button></h3><p>The answer.</p></main>",
        "<main><h1>A</h1><aside>KEEP Note: the tide <a href=/t>table</a> is from last year and may be wrong by minutes.</aside></main>",
    ] {
        let text = text(html);
        assert!(text.contains("KEEP"), "{html}\n{text}");
    }
    let long = "KEEP the harbour is described here in many words. ".repeat(6);
    for html in [
        format!(
            "<main><h1>A</h1><div><p>We use cookies on this site.</p><p>{long}</p><button>OK</button></div></main>"
        ),
        format!("<main><h1>A</h1><div id=gdpr><p>We use cookies.</p><p>{}</p></div></main>", long.repeat(12)),
    ] {
        assert!(text(&html).contains("KEEP"), "{html}");
    }
    // Long parts by whose names alone they could be boxes, with all of a box in or around them.
    let answers = "<button>Accept all</button><button>Reject all</button>";
    let asked = "<p>We and our partners use cookies on this site.</p>";
    let policy = "<p>KEEP Cookies of our partners serve these purposes.</p>".repeat(80);
    let long = long.repeat(12);
    for body in [
        // A text that begins with a question.
        format!(
            "<header><h1>Site</h1></header><div class=\"modal-root\">{asked}{answers}<p>{long}</p></div>"
        ),
        // The question is a box of its own.
        format!(
            "<header><h1>Site</h1></header><div class=\"page has-overlay\"><div class=cookie-banner>{asked}{answers}</div>\
             <div class=text>{policy}</div></div>"
        ),
        // About cookies, with nothing to answer, or one answer.
        format!("<h1>Site</h1><div class=\"cookie-notice\">{asked}{policy}</div>"),
        format!("<h1>Site</h1><div class=\"cookie-notice\">{asked}{policy}<button>OK</button></div>"),
        // The whole page, and one with its heading in it.
        format!("<div class=cookie-banner>{asked}{policy}{answers}</div>"),
        format!("<h1>Site</h1><div class=cookie-banner><h1>Cookies</h1>{asked}{policy}{answers}</div>"),
        format!("<h1>Site</h1><div class=cookie-banner><article>{asked}{policy}{answers}</article></div>"),
        // No box by its name.
        format!("<h1>Site</h1><div class=cookie-lore>{asked}{policy}{answers}</div>"),
        format!("<h1>Site</h1><div class=remodal-ish>{asked}{policy}{answers}</div>"),
    ] {
        assert!(text(&format!("<body>{body}")).contains("KEEP"), "{body}");
    }
}

#[test]
fn a_short_page_cannot_become_a_text_without_end() {
    let long = "a/".repeat(950);
    for html in [
        format!("<base href=\"https://x.example/{long}\"><main>{}", "<p><a href=z>y</a>".repeat(1_500)),
        format!("<main><table><tr><th>x</th></tr>{}", "<tr><td colspan=64>x</td></tr>".repeat(22_000)),
    ] {
        let found = read_at(&html);
        assert!(found.text.len() <= 4 << 20, "{}", found.text.len());
        assert!(found.notes.iter().any(|note| note.contains("longer than 4 MB")), "{:?}", found.notes);
    }
    // Lines without content do not make a page deep.
    let flat = format!("<main><h1>T</h1>{}<p><a href=/z>end</a>", "x<br>".repeat(21_000));
    assert!(text(&flat).contains("[end](https://example.org/z)"));
}

#[test]
fn a_page_that_has_nothing_else_shows_what_it_has() {
    for html in [
        "<div id=onetrust-consent-sdk><p>ONLY this: we use cookies.</p><button>Accept</button></div>",
        "<div role=dialog><p>ONLY for adults.</p></div>",
        "<nav><a href=/a>ONLY links</a></nav>",
        "<main hidden><p>ONLY later.</p></main>",
        "<noscript><p>ONLY here is the whole text of the page for readers without scripts.</p></noscript>",
        "<footer>ONLY a footer</footer>",
        "ONLY text",
    ] {
        let text = text(&format!("<body>{html}"));
        assert!(text.contains("ONLY"), "{html}\n{text}");
    }
    assert_eq!(text(""), "");
    assert_eq!(text("<title>T</title><body>"), "");
}

#[test]
fn several_main_parts_and_articles_are_all_shown() {
    let part = |n: u32| format!("<h2>Part {n}</h2><p>{}</p>", format!("words of part {n} ").repeat(20));
    let two = format!("<main>{}</main><main>{}</main>", part(1), part(2));
    let list = format!(
        "<h1>News</h1><div><article>{}</article><p>between</p><article>{}</article></div>",
        part(1),
        part(2)
    );
    for html in [two, list] {
        let text = text(&format!("<nav><a href=/>Menu</a></nav>{html}<footer>Imprint</footer>"));
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
        assert!(at("## Part 1") < at("## Part 2"), "{text}");
        assert!(!text.contains("Menu") && !text.contains("Imprint"), "{text}");
    }
}

#[test]
fn elements_are_written_as_markdown() {
    for (html, expected) in [
        ("<p>a <b>b</b> <i>c </i>d<br>e<hr>", "a **b** *c* d\ne\n\n---"),
        ("<ul><li>one<ul><li>in</ul><li><p>two</p><p>more</p></ul>", "- one\n  - in\n- two\n\n  more"),
        ("<ol start=3><li>c<li value=7>g<li>h</ol>", "3. c\n7. g\n8. h"),
        ("<dl><dt>Term<dd>What it means<dd>Also</dl>", "**Term**\n: What it means\n: Also"),
        ("<blockquote><p>said<p>twice</blockquote>", "> said\n>\n> twice"),
        (
            "<pre><code class=\"language-rust\">fn a() {\n    b();\n}\n</code></pre>",
            "```rust\nfn a() {\n    b();\n}\n```",
        ),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        (
            "<div class=highlight><pre><span>x</span> &lt; <b>1</b>\n\n  y</pre></div>",
            "```\nx < 1\n\n  y\n```",
        ),
        ("<p>run <code>ls  -l</code> now", "run `ls -l` now"),
        (
            "<table><tr><th>Port<th>Hour<tr><td>A|B<td>7</table>",
            "| Port | Hour |\n| --- | --- |\n| A\\|B | 7 |",
        ),
        (
            "<table><caption>T</caption><tr><td colspan=2>x<td>y<tr><td>1<td>2<td>3</table>",
            "**T**\n\n| x |  | y |\n| --- | --- | --- |\n| 1 | 2 | 3 |",
        ),
        (
            "<table><tr><td><p>left</p><ul><li>a</ul><tr><td><pre>code</pre></table>",
            "left\n\n- a\n\n```\ncode\n```",
        ),
        (
            "<ul><li><input type=checkbox checked> done<li><input type=checkbox> open</ul>",
            "- [x] done\n- [ ] open",
        ),
        (
            "<p>10<sup>6</sup> &amp; &lt;b&gt; &quot;x&quot; &copy; &#8364; caf&eacute;",
            "10^6 & <b> \"x\" © € café",
        ),
        ("<pre>a ` `` ````` b</pre>", "``````\na ` `` ````` b\n``````"),
        ("<p><code>a ```` b</code>", "`````a ```` b`````"),
        (
            "<table><tr><th>A<th>B<tr><td rowspan=2>x<td>1<tr><td>2<tr><td>y<td>3</table>",
            "| A | B |\n| --- | --- |\n| x | 1 |\n|  | 2 |\n| y | 3 |",
        ),
        (
            "<table><tr><th colspan=18446744073709551615 rowspan=2>A</table>",
            &format!("| A |{}\n|{}", "  |".repeat(63), " --- |".repeat(64)),
        ),
        ("<table role=presentation><caption>Cap</caption><tr><td>x</table>", "**Cap**\n\nx"),
        ("<button aria-expanded=false>Question</button><div>Answer</div>", "Question\nAnswer"),
        ("<button>Question</button><p>Answer</p>", "Question\n\nAnswer"),
        ("<p>text <button>Print</button></p>", "text"),
        ("<section><header><h2>Head</h2></header><p>x</section>", "## Head\n\nx"),
        ("<details><summary>Why</summary>Because</details>", "**Why**\n\nBecause"),
        ("<h2>Title <a class=anchor href=#t>#</a></h2><p>x", "## Title\n\nx"),
        ("<div>a</div><div>b</div><p>c</p>", "a\nb\n\nc"),
        (
            "<figure><img alt=\"A boat\" src=/b.png><figcaption>The boat</figcaption></figure>",
            "![A boat](https://example.org/b.png)\nThe boat",
        ),
        ("<a href=/card><h3>Card</h3><p>text</p></a>", "[Card text](https://example.org/card)"),
        ("<iframe src=\"/v?a=1&amp;b=2\" title=Map></iframe>", "[frame Map](https://example.org/v?a=1&b=2)"),
        ("<math><mi>x</mi><annotation encoding=\"application/x-tex\">x^2</annotation></math>", "$x^2$"),
    ] {
        assert_eq!(text(&format!("<body><main>{html}</main>")), expected, "{html}");
    }
}

#[test]
fn addresses_are_decoded_and_absolute() {
    for (href, base, expected) in [
        ("/a?x=1&amp;y=2", "", "https://example.org/a?x=1&y=2"),
        ("b?x=1&y=2&copy=3", "", "https://example.org/docs/b?x=1&y=2&copy=3"),
        ("?q=a%20b%26c%2Fd", "", "https://example.org/docs/page?q=a%20b%26c%2Fd"),
        ("/100%25/%E2%82%AC", "", "https://example.org/100%25/%E2%82%AC"),
        ("/a&#47;b&#x3f;c", "", "https://example.org/a/b?c"),
        ("/&quot;x&quot;", "", "https://example.org/%22x%22"),
        ("//other.example/p", "", "https://other.example/p"),
        (" ../up ", "", "https://example.org/up"),
        ("z", "https://cdn.example/base/x", "https://cdn.example/base/z"),
        ("z", "/root/", "https://example.org/root/z"),
        ("z", "javascript:alert(1)", "https://example.org/docs/z"),
        ("mailto:a@b.example?subject=x&amp;body=y", "", "mailto:a@b.example?subject=x&body=y"),
        ("/wiki/A_(b)", "", "https://example.org/wiki/A_(b)"),
        ("http://x.example/#part&amp;2", "", "http://x.example/#part&2"),
    ] {
        let base = if base.is_empty() { String::new() } else { format!("<base href=\"{base}\">") };
        let text = text(&format!("<head>{base}</head><main><p><a href=\"{href}\">link</a></main>"));
        assert_eq!(text, format!("[link]({expected})"), "{href}");
    }
    for href in ["javascript:void(0)", "#top", "", "data:text/html,x", "http://[bad"] {
        assert_eq!(text(&format!("<main><a href=\"{href}\">link</a></main>")), "link", "{href}");
    }
    // An address that is too long is left out, also by the one that it is relative to.
    let long = "a/".repeat(1_500);
    assert_eq!(text(&format!("<main><a href=/{long}>link</a></main>")), "link");
    let base =
        format!("<head><base href=\"https://x.example/{long}\"></head><main><a href=z>link</a></main>");
    assert_eq!(text(&base), "[link](https://example.org/docs/z)");
    assert_eq!(text("<main><a href=/a(b>x</a></main>"), "[x](<https://example.org/a(b>)");
    assert_eq!(text("<main><a href=https://x.example/>https://x.example/</a></main>"), "https://x.example/");
    assert_eq!(
        text("<main><a href=/x aria-label=Cart><svg></svg></a></main>"),
        "[Cart](https://example.org/x)"
    );
}

#[test]
fn what_is_left_out_is_counted() {
    let html = "<nav><a href=/1>1</a><a href=/2>2</a></nav><div class=cookie-notice>We use cookies <button>OK</button></div>\
        <main><h1>Form</h1><p>Fill it in.</p><img src=a.png><img src=b.png alt=\"\"><iframe src=/f></iframe><video></video>\
        <form><input name=a><select><option>one</select><textarea></textarea><input type=submit></form></main>\
        <footer>three more words</footer>";
    let notes = read_at(html).notes.join("\n");
    assert_eq!(
        notes,
        "left out: 2 links of the navigation, 3 words beside the main part, 1 cookie notice, 2 images without a \
         description, 1 frame (its address is shown), 1 video or other medium, 1 form with 3 fields; raw=true gives the HTML"
    );
    for (html, note) in [
        (
            "<main><h1>T</h1><p hidden>one <b hidden>two</b></p><p style='display:none'>x</p>",
            "3 hidden words",
        ),
        ("<main><h1>T</h1><p>x</p><iframe></iframe></main>", "1 video or other medium"),
    ] {
        assert_eq!(read_at(html).notes, [format!("left out: {note}; raw=true gives the HTML")], "{html}");
    }
    let wide = format!("<main><table><tr>{}</table></main>", "<th>x".repeat(70));
    assert_eq!(read_at(&wide).notes, ["left out: 6 cells of wide tables; raw=true gives the HTML"]);
    assert_eq!(read_at("<main><h1>Plain</h1><p>text</main>").notes, Vec::<String>::new());
}

#[test]
fn pages_that_scripts_make_are_known() {
    let script = "<script src=/app.js></script>";
    let long =
        "<p>A page that can be read as it is, since its server has written all of its text.</p>".repeat(8);
    for (html, made) in [
        (format!("<div id=root></div>{script}"), true),
        (
            format!(
                "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>{script}"
            ),
            true,
        ),
        (
            format!(
                "<div id=app><div class=spinner></div></div>{script}<footer>Imprint, terms and a lot of other words \
            that stand below each page of this site, which has many</footer>"
            ),
            true,
        ),
        (format!("<app-root>Loading...</app-root>{script}"), true),
        (format!("<body>{script}</body>"), true),
        ("<p>This site requires JavaScript. Please turn on JavaScript in your browser.</p>".into(), true),
        (
            format!("<div id=__next><p>JavaScript is disabled in your browser. Enable it.</p></div>{script}"),
            true,
        ),
        (format!("<div id=root>{long}</div>{script}"), false),
        (format!("<main>{long}<p>How to enable JavaScript</p></main>{script}"), false),
        (format!("<main>{long}</main><noscript>Enable JavaScript</noscript>{script}"), false),
        ("<p>short page</p>".into(), false),
        ("<div id=root></div>".into(), false),
        ("<script type=\"application/ld+json\">{}</script><p>short page</p>".into(), false),
        (format!("<p>short page</p>{script}"), false),
    ] {
        assert_eq!(read_at(&html).scripts == Some(ByScripts::Surely), made, "{html}");
    }
    assert_eq!(read_at(&format!("<p>short page</p>{script}")).scripts, Some(ByScripts::Perhaps));
    assert_eq!(read_at("<p>short page</p>").scripts, None);
}

#[test]
fn frames_of_a_page_are_shown_as_their_addresses() {
    let text = text(
        "<frameset cols=\"20%,80%\"><frame src=menu.html name=menu><frame src=\"start.html?a&amp;b\"></frameset>",
    );
    assert!(text.contains("[frame menu](https://example.org/docs/menu.html)"), "{text}");
    assert!(text.contains("[frame](https://example.org/docs/start.html?a&b)"), "{text}");
}

#[test]
fn the_title_is_shown_once() {
    assert_eq!(text("<title>The\n page</title><main><p>x</main>"), "# The page\n\nx");
    assert_eq!(text("<title>The page - Site</title><main><h1>The page</h1><p>x</main>"), "# The page\n\nx");
    assert_eq!(text("<main><p>x</main><svg><title>icon</title></svg>"), "x");
}

#[test]
fn x10_a_page_nested_without_end_is_survived() {
    for (open, n) in [
        ("<div>", 1_000_000),
        ("<b>", 15_000),
        ("<table><tr><td>", 5_000),
        ("<blockquote>", 300),
        ("<ul><li>", 90),
        ("<blockquote>", 150),
        ("<a href=/x>", 150),
        ("<div class=cookie-banner>", 150),
    ] {
        let html = format!("<body>{}deep text", open.repeat(n));
        assert!(text(&html).contains("deep text"), "{open}");
    }
    // Many boxes beside each other, each of which is looked at.
    let boxes = "<div class=cookie-box><p>cookies</p><button>Accept</button></div>".repeat(4_000);
    assert!(text(&format!("<main><h1>T</h1><p>text</p></main>{boxes}")).contains("text"));
}

/// A box within many, with many elements within each other in it: this many in all, and no deeper than a page may be.
fn nested(open: &str, close: &str, deep: usize, count: usize) -> String {
    let chain = format!("{}{}", open.repeat(deep), close.repeat(deep));
    let boxes = 190_usize.saturating_sub(deep * open.matches('<').count());
    format!(
        "<body><main><h1>T</h1><p>The text of the page.</p></main>{}<p>We use cookies on this site.</p>{}{}",
        "<div class='overlay cookie-layer'>".repeat(boxes),
        chain.repeat(count / deep),
        "</div>".repeat(boxes),
    )
}

#[test]
fn elements_within_each_other_are_not_walked_through_for_each_of_them() {
    for (open, close, deep) in [
        ("<div role=button>", "</div>", 90),
        ("<div role=button class=modal>", "</div>", 100),
        ("<object><a href=/x>", "</a></object>", 50),
        ("<ul class=menu><li><object><a href=/x>", "</a></object></li></ul>", 30),
        ("<aside class=related>", "</aside>", 150),
        ("<section aria-hidden=true>", "</section>", 150),
        ("<nav class=nav>", "</nav>", 150),
        ("<noscript id=root>", "</noscript>", 150),
        ("<form><input type=email><div class=newsletter>", "</div></form>", 100),
    ] {
        // Most of the time is that of the parser.
        let count = if deep == 90 { 100_000 } else { 10_000 };
        let html = nested(open, close, deep, count);
        assert!(!is_too_deep(&html), "{open}");
        assert!(text(&html).contains("The text of the page."), "{open}");
    }
}

#[test]
fn measures_of_one_walk_are_those_of_a_walk_for_each() {
    let boxes = "<div role=main><title>t</title>a b<object><a>c <object><a>d e</a></object></a></object></div>\
                 <section><div><h1>f</h1></div><aside><a>g</a> h i</aside></section>";
    let all = pages("<nav><a href=/a>A b</a> c</nav>", "<aside><a>x</a></aside>", boxes);
    for (name, html) in all.into_iter().chain(long_clutter()) {
        let document = Document::from(html.as_str());
        let measures = measure::Measures::of(&document.root());
        for node in document.root().descendants_it().filter(NodeRef::is_element) {
            let at = format!("{name}: {}", node.html());
            let inner = || node.descendants_it();
            let linked: usize = inner()
                .filter(|n| n.is_text())
                .filter(|n| n.ancestors_it(None).take_while(|o| o.id != node.id).any(|o| is(&o, &["a"])))
                .map(|n| n.text().split_whitespace().count())
                .sum();
            let core = is_core(&node) || inner().any(|n| is_core(&n));
            assert_eq!(measures.words(&node), words(&node, usize::MAX), "{at}");
            assert_eq!(measures.has_core(&node), core, "{at}");
            assert_eq!(measures.holds_core(&node), core || inner().any(|n| is(&n, &["h1"])), "{at}");
            let links = inner().any(|n| is(&n, &["a"]));
            assert_eq!(measures.is_links(&node), links && linked * 2 >= measures.words(&node), "{at}");
            for section in [false, true] {
                let around = node.ancestors_it(None).any(|o| {
                    is(&o, &["main", "article"])
                        || attribute(&o, "role") == "main"
                        || section && is(&o, &["section"])
                });
                assert_eq!(measures.in_core(&node, section), around, "{at}");
            }
        }
    }
}
