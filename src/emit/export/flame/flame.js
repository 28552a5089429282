// flame: zoom, search and keys of a flame graph in one SVG file. Without a script it is still a picture.
(function() {
  const root = document.currentScript.closest(".flamegraph"), frames = document.getElementById("frames"), CHARACTER = 7;
  const found = document.getElementById("found"), details = document.getElementById("details"),
        input = document.getElementById("search"), reset = document.getElementById("reset");
  // Boxes in the order of the file: a box comes before those that it calls.
  const boxes = [...frames.getElementsByClassName("f")].map((element) => {
    const [x, width, depth, lines] = element.dataset.at.split(" ").map(Number),
          title = element.querySelector("title").textContent;
    return {
      element, x, width, depth, title, name: element.dataset.name, rect: element.querySelector("rect"),
      text: element.querySelector("text"),
      words: title.split("\n").slice(0, lines).join("\n").toLowerCase()  // the others are figures
    };
  });
  const EDGE = 1e-4, SIDES = 20, CONTROLS = 340;
  let zoomed = null, wanted = "", focus = 0;

  const within = (box, other) =>
    box.depth >= other.depth && box.x >= other.x - EDGE && box.x + box.width <= other.x + other.width + EDGE;
  const isHit = (box) => wanted !== "" && box.words.includes(wanted);

  function label(box, pixels) {
    const room = Math.floor((pixels - 6) / CHARACTER);
    box.text.textContent =
      room < 2 ? "" : box.name.length <= room ? box.name : [...box.name].slice(0, room - 1).join("") + "…";
  }
  function draw() {
    const wide = frames.getBoundingClientRect().width || 1180, from = zoomed ? zoomed.x : 0,
          scale = zoomed ? 100 / zoomed.width : 1;
    boxes.forEach((box, at) => {
      const above = zoomed !== null && box !== zoomed && within(zoomed, box),
            out = zoomed !== null && !above && !within(box, zoomed),
            x = above ? 0 : (box.x - from) * scale, width = above ? 100 : box.width * scale;
      box.element.classList.toggle("up", above);
      box.element.classList.toggle("out", out);
      box.element.classList.toggle("hit", isHit(box));
      box.element.tabIndex = at === focus ? 0 : -1;
      if (out) return;
      box.rect.setAttribute("x", x + "%");
      box.rect.setAttribute("width", width + "%");
      box.text.setAttribute("x", x + "%");
      label(box, width / 100 * wide);
    });
    root.classList.toggle("searching", wanted !== "");
    reset.disabled = zoomed === null;
    tellHits();
  }
  // Matches nested in other matches are not counted twice.
  function tellHits() {
    let sum = 0, n = 0, last = null;
    boxes.forEach((box) => {
      if (!isHit(box) || (zoomed && !within(box, zoomed)) || (last && within(box, last))) return;
      last = box;
      sum += box.width;
      n++;
    });
    const share = sum / (zoomed ? zoomed.width : 100) * 100;
    found.textContent = wanted === "" ? "" : n === 0 ? "no hits" : n + (n === 1 ? " hit, " : " hits, ") +
          share.toFixed(1) + " %";
  }
  function zoom(box) {
    zoomed = box && box.depth === 0 && box.width > 100 - EDGE ? null : box;
    draw();
  }
  function focusOn(at) {
    if (at < 0) return;
    boxes[focus].element.tabIndex = -1;
    focus = at;
    boxes[at].element.tabIndex = 0;
    boxes[at].element.focus();
  }
  const find = (test) => boxes.findIndex((box) => !box.element.classList.contains("out") && test(box));
  function beside(by) {
    for (let at = focus + by; boxes[at]; at += by)
      if (boxes[at].depth === boxes[focus].depth && !boxes[at].element.classList.contains("out")) return at;
    return -1;
  }
  const keys = {
    ArrowUp: () => focusOn(find((box) => box.depth === boxes[focus].depth - 1 && within(boxes[focus], box))),
    ArrowDown: () => focusOn(find((box) => box.depth === boxes[focus].depth + 1 && within(box, boxes[focus]))),
    ArrowLeft: () => focusOn(beside(-1)),
    ArrowRight: () => focusOn(beside(1)),
    Enter: () => zoom(boxes[focus] === zoomed ? null : boxes[focus]),
    Escape: () => zoom(null),
  };
  const boxOf = (event) => {
    const element = event.target.closest(".f");
    return element ? boxes.findIndex((box) => box.element === element) : -1;
  };
  const tell = (at) => details.textContent = at < 0 ? details.dataset.empty : boxes[at].title.replaceAll("\n", "  ·  ");
  frames.addEventListener("click", (event) => {
    const at = boxOf(event);
    if (at < 0) return;
    focus = at;
    zoom(boxes[at] === zoomed ? null : boxes[at]);
  });
  frames.addEventListener("pointerover", (event) => tell(boxOf(event)));
  frames.addEventListener("pointerleave", () => tell(-1));
  frames.addEventListener("focusin", (event) => tell(boxOf(event)));
  frames.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  });
  input.addEventListener("input", () => {
    wanted = input.value.trim().toLowerCase();
    draw();
  });
  reset.addEventListener("click", () => zoom(null));
  // As wide as the window, without scaling the text.
  function fit() {
    const wide = Math.max(root.getBoundingClientRect().width || innerWidth, 400);
    frames.setAttribute("width", wide - SIDES);
    document.getElementById("controls").setAttribute("x", wide - CONTROLS);
    found.setAttribute("x", wide - CONTROLS);
    draw();
  }
  addEventListener("resize", fit);
  root.removeAttribute("viewBox");
  root.setAttribute("width", "100%");
  root.classList.add("live");
  fit();
  root.dataset.ready = "yes";
})();
