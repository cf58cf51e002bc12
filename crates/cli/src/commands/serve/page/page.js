/** What the server says, to the parts of the page. */
const link = { socket: null, attached: 0, wish: 0, state: "connecting", again: 500 };

const scope = new Scope((ids) => {
  link.wish += 1;
  if (link.socket?.readyState === WebSocket.OPEN && link.state === "attached") {
    link.socket.send(JSON.stringify({ attached: link.attached, wish: link.wish, scope: ids }));
  }
  return link.wish;
});
tabs();
picker(scope);
const panels = { axes: new AxesPanel(scope), signals: new SignalsPanel(scope), timing: new TimingPanel(scope), events: new EventsPanel(scope), bus: new BusPanel() };

function notice(text) {
  $("notice").hidden = !text;
  say($("notice"), text);
}

function standing(text, style) {
  say($("standing"), text, `badge ${style}`);
  document.title = `${$("robot").textContent}: ${text}`;
}

const heard = {
  state(it) {
    link.state = it.state;
    scope.live = it.state === "attached";
    scope.dirty = true;
    if (it.state === "waiting") {
      standing("waiting for a cycle", "warn");
      notice(`No cycle is shown: ${it.why}. The page goes on by itself when one runs.`);
    } else if (it.state === "ended") {
      standing("ended", "bad");
      notice(`The cycle "${it.name}" has ended: ${it.why}. What is shown is its last state; the next cycle is waited for.`);
    } else {
      notice("");
      link.attached = it.attached;
      say($("robot"), it.robot);
      link.cycle = it;
      panels.axes.attach(it.axes);
      panels.signals.attach(it.signals);
      panels.timing.attach();
      panels.bus.attach();
      scope.attach(it.channels, it.axes);
      standing("attached", "");
    }
  },

  picture(it) {
    if (it.attached !== link.attached) return;
    const { cycle } = link;
    const still = it.still_ms > 0;
    scope.live = link.state === "attached" && !still;
    if (link.state === "attached") {
      if (still) standing(`stands still for ${seconds(it.still_ms / 1000)}`, "bad");
      else standing(it.bus.phase, it.bus.phase === "Op" ? "good" : "warn");
    }
    const controller = it.controller ? `, ${it.controller}${it.enabled ? "" : ", disabled"}` : "";
    const command = it.command.freshness === "never" ? "" : `, command ${it.command.freshness}`;
    const refusal = it.command.last_refusal ? `, refused: ${it.command.last_refusal}` : "";
    say($("facts"), `cycle ${grouped(it.cycle)}, every ${microseconds(cycle.period_ns)}${controller}${command}${refusal}`);
    panels.axes.show(it);
    panels.signals.show(it);
    panels.timing.picture(it);
    panels.bus.picture(it);
    losses({ missed: it.missed });
  },

  timing: (it) => it.attached === link.attached && panels.timing.show(it),
  tree: (it) => panels.bus.found(it),
  bus: (it) => panels.bus.show(it),
  event: (it) => panels.events.add(it.time, it.event),
  overrun: (it) => panels.timing.overrun(it),
  events_missed: (it) => panels.events.line("", `${it.count} events were missed`, "warn"),
};

const lost = { missed: 0, dropped: 0 };

/** Cycles that are missing on the scope, and why. */
function losses(now) {
  Object.assign(lost, now);
  const words = [lost.missed && `${grouped(lost.missed)} cycles not read in time`, lost.dropped && `${grouped(lost.dropped)} rows dropped: this browser is slow`];
  const text = words.filter(Boolean).join(", ");
  say($("losses"), text || "every cycle read", text ? "warn" : "");
}

/** Rows: a head of eight numbers, then cycle, time and values. */
function rows(buffer) {
  const numbers = new Float64Array(buffer);
  const [attached, wish, count, , missed, dropped] = numbers;
  if (attached !== link.attached) return;
  losses({ missed, dropped });
  scope.rows(wish, numbers.subarray(8), count);
}

function connect() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
  link.socket = socket;
  socket.binaryType = "arraybuffer";
  socket.onopen = () => (link.again = 500);
  socket.onmessage = ({ data }) => {
    if (data instanceof ArrayBuffer) return rows(data);
    const it = JSON.parse(data);
    heard[it.kind]?.(it);
  };
  socket.onclose = ({ reason }) => {
    link.state = "connecting";
    scope.live = false;
    scope.dirty = true;
    standing("not connected", "bad");
    notice(`onbeat serve does not answer${reason ? `: ${reason}` : ""}. The page tries again by itself.`);
    setTimeout(connect, link.again);
    link.again = Math.min(link.again * 2, 5000);
  };
}
connect();
