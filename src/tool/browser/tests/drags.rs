//! Dragging: elements that the browser drags, and those that follow the mouse by the page's own scripts.

use serde_json::json;

use super::site::{Site, html};
use super::{World, reference};

const SORTED: &str = "<style>li, .box { height: 30px; width: 120px; cursor: grab } #field { height: 80px; width: 200px }</style>\
    <ul id=list><li draggable=true>One</li><li draggable=true>Two</li><li draggable=true>Three</li></ul>\
    <div class=box id=card draggable=true role=button>Card</div><div id=field role=button>Field</div><p id=out></p>\
    <script>let held; const say = text => out.textContent += ' ' + text;\
    for (const e of list.children) {\
      e.ondragstart = v => { held = e; v.dataTransfer.effectAllowed = 'move'; v.dataTransfer.setData('text/plain', e.textContent) };\
      e.ondragover = v => v.preventDefault();\
      e.ondrop = v => { v.preventDefault(); list.insertBefore(held, e); say('order ' + [...list.children].map(c => c.textContent)) };\
    }\
    card.ondragstart = v => { v.dataTransfer.setData('text/html', '<b>card</b>'); v.dataTransfer.setData('text/plain', 'card') };\
    card.ondragend = v => say('end ' + v.dataTransfer.dropEffect);\
    field.ondragenter = v => v.preventDefault(); field.ondragover = v => { v.preventDefault(); v.dataTransfer.dropEffect = 'copy' };\
    field.ondragleave = () => say('left');\
    field.ondrop = v => { v.preventDefault(); say('got ' + v.dataTransfer.getData('text/plain') + ' ' + v.dataTransfer.getData('text/html')) }\
    </script>";

#[tokio::test(flavor = "multi_thread")]
async fn elements_that_the_browser_drags_are_dropped_with_their_data() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html(SORTED))]);
    let page = world.open(&site, "/").await;
    let at = |words: &[&str]| reference(&page, words);
    let card = world.call("click", json!({"ref": at(&["Card"]), "drag_to": at(&["Field"])})).await;
    assert!(card.contains("got card <b>card</b>") && card.contains("end copy"), "{card}");
    let sorted = world.call("click", json!({"ref": at(&["Three"]), "drag_to": at(&["One"])})).await;
    assert!(sorted.contains("order Three,One,Two"), "{sorted}");
    // Nothing takes it there, and the next drag begins anew.
    let page = world.call("snapshot", json!({})).await;
    let (card, field) = (reference(&page, &["Card"]), reference(&page, &["Field"]));
    let nowhere = world.call("click", json!({"ref": card, "drag_by": [400, 0]})).await;
    assert!(nowhere.contains("end none"), "{nowhere}");
    let by = world.call("click", json!({"ref": card, "drag_by": [0, 40]})).await;
    assert!(by.contains("end copy"), "{by}");
    let clicked = world.call("click", json!({"ref": field})).await;
    assert!(!clicked.contains("error"), "the mouse is free again: {clicked}");
    world.end().await;
}

const FOLLOWS: &str = "<style>#bar { position: relative; width: 300px; height: 20px } #knob { position: absolute; left: 0; width: 20px; height: 20px }\
    #rows div { height: 30px; width: 120px; touch-action: none; cursor: grab }</style>\
    <div id=bar><div id=knob role=slider tabindex=0 aria-label=Volume aria-valuenow=0></div></div>\
    <input type=range min=0 max=100 value=0 aria-label=Range style='width:200px;margin:0' oninput=\"said.textContent = 'range ' + this.value\">\
    <div id=rows><div role=button>Red</div><div role=button>Green</div><div role=button>Blue</div></div><p id=said></p>\
    <script>let from = null;\
    knob.onpointerdown = e => { knob.setPointerCapture(e.pointerId); from = e.clientX };\
    knob.onpointermove = e => { if (from !== null && e.buttons) knob.style.left = Math.min(280, Math.max(0, e.clientX - from)) + 'px' };\
    knob.onpointerup = () => { from = null; knob.setAttribute('aria-valuenow', parseInt(knob.style.left)); said.textContent = 'at ' + knob.style.left };\
    let row = null, moves = 0;\
    rows.onmousedown = e => { row = e.target; moves = 0; e.preventDefault() };\
    onmousemove = e => { if (!row) return; moves++;\
      const next = [...rows.children].find(c => c !== row && e.clientY < c.getBoundingClientRect().top + 15);\
      rows.insertBefore(row, next || null) };\
    onmouseup = () => { if (row) said.textContent = [...rows.children].map(c => c.textContent) + ' after ' + (moves > 2 ? 'moves' : 'a jump'); row = null };\
    </script>";

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_the_mouse_by_scripts_is_moved() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html(FOLLOWS))]);
    let page = world.open(&site, "/").await;
    let at = |words: &[&str]| reference(&page, words);
    let knob = world.call("click", json!({"ref": at(&["Volume"]), "drag_by": [150, 0]})).await;
    assert!(knob.contains("at 150px"), "{knob}");
    let range = json!({"ref": at(&["Range"]), "x": 8, "y": 8, "drag_by": [92, 0]});
    let range = world.call("click", range).await;
    assert!(range.contains("\"range 5") || range.contains("\"range 4"), "{range}");
    let rows =
        world.call("click", json!({"ref": at(&["button", "Red"]), "drag_to": at(&["button", "Blue"])})).await;
    assert!(rows.contains("Green,Blue,Red after moves"), "{page}{rows}");
    world.end().await;
}
