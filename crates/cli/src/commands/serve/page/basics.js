const $ = (id) => document.getElementById(id);

/** An element with properties and children; text is never markup. */
function element(tag, properties = {}, ...children) {
  const it = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "data") Object.assign(it.dataset, value);
    else if (name in it) it[name] = value;
    else it.setAttribute(name, value);
  }
  it.append(...children);
  return it;
}

/** Sets a text where it has changed: the page is drawn anew several times a second. */
function say(node, text, style) {
  if (node.textContent !== text) node.textContent = text;
  if (style !== undefined && node.className !== style) node.className = style;
}

/** As many digits as are read at a glance; columns of them do not jump. */
function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 10 ** -digits)) return value.toExponential(2);
  return value.toFixed(Math.max(0, digits - Math.max(0, Math.floor(Math.log10(Math.max(size, 1))))));
}

function microseconds(ns) {
  return ns === null || ns === undefined ? "-" : ns >= 1e6 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1e3).toFixed(1)} us`;
}

function seconds(time) {
  const size = Math.abs(time);
  if (size >= 1 || size === 0) return `${+time.toFixed(size >= 10 ? 3 : 4)} s`;
  return size >= 1e-3 ? `${+(time * 1e3).toFixed(3)} ms` : `${+(time * 1e6).toFixed(1)} us`;
}

const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, " ");

/** Rows of a table that stay while their values change. */
class Rows {
  constructor(body, columns) {
    this.body = body;
    this.columns = columns;
    this.rows = [];
  }

  /** One row for each of `cells`: a list of texts, or of [text, style]. */
  show(cells) {
    while (this.rows.length > cells.length) this.rows.pop().remove();
    cells.forEach((row, place) => {
      if (!this.rows[place]) {
        const made = element("tr");
        this.columns.forEach((column) => {
          made.append(element("td", { className: column.style ?? "", data: { name: column.name } }));
        });
        this.body.append(made);
        this.rows.push(made);
      }
      row.forEach((cell, column) => {
        const node = this.rows[place].cells[column];
        if (cell instanceof Node) {
          if (node.firstChild !== cell) node.replaceChildren(cell);
          return;
        }
        const [text, style] = Array.isArray(cell) ? cell : [cell, ""];
        say(node, text, `${this.columns[column].style ?? ""} ${style}`.trim());
      });
    });
  }
}

/** A table in a frame that scrolls sideways; its rows are shown by the result. */
function table(parent, columns, style = "") {
  const body = element("tbody");
  const heads = columns.map((it) => element("th", { className: it.style?.includes("text") ? "text" : "" }, it.name));
  const made = element("table", { className: style }, element("thead", {}, element("tr", {}, ...heads)), body);
  const frame = element("div", { className: "wide" }, made);
  parent.append(frame);
  return Object.assign(new Rows(body, columns), { frame });
}

function remembered(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`onbeat.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`onbeat.${name}`, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing.
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Colours of the theme for a canvas. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["ink", "aside", "line", "grid", "main", "bad", "warn", "good", "card"].map((it) => [it, style.getPropertyValue(`--${it}`).trim()]));
}

/** Colour of the channel in this place, told apart on both themes. */
function colour(place) {
  const hue = [214, 12, 145, 280, 38, 190, 330, 95, 250, 60][place % 10];
  const step = Math.floor(place / 10) % 3;
  return dark.matches ? `hsl(${hue} 80% ${68 - 9 * step}%)` : `hsl(${hue} 75% ${40 + 9 * step}%)`;
}

/** A canvas in the pixels of the screen. */
function pen(canvas) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height };
}
