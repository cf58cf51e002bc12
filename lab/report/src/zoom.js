// Plots of a report: the values at the pointer, a part of a plot by dragging over it, all of it by a double click.
for (const svg of document.querySelectorAll('figure svg[data-x]')) {
  const numbers = name => svg.getAttribute(name).split(' ').map(Number);
  const [left, top, width, height] = numbers('data-area'), [x0, x1, logX] = numbers('data-x'), [y0, y1, logY] = numbers('data-y');
  const all = svg.getAttribute('viewBox').split(' ').map(Number);
  const on = (share, low, high, log) => log ? low * Math.pow(high / low, share) : low + share * (high - low);
  const x = at => on((at - left) / width, x0, x1, logX), y = at => on(1 - (at - top) / height, y0, y1, logY);
  const words = value => String(Number(value.toPrecision(5)));
  const readout = document.createElement('p');
  readout.className = 'readout';
  svg.parentNode.insertBefore(readout, svg.nextSibling);
  const frame = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  frame.setAttribute('class', 'frame');
  let shown = all, begin = null;
  const inside = (value, low, size) => Math.min(Math.max(value, low), low + size);
  // Place in the plot, in units of the picture.
  const place = event => {
    const box = svg.getBoundingClientRect();
    const across = shown[0] + (event.clientX - box.left) / box.width * shown[2];
    const down = shown[1] + (event.clientY - box.top) / box.height * shown[3];
    return [inside(across, left, width), inside(down, top, height)];
  };
  const tell = text => {
    const part = shown === all ? 'drag over a part to see it larger' :
      `x ${words(x(shown[0]))} to ${words(x(shown[0] + shown[2]))}, y ${words(y(shown[1] + shown[3]))} to ${words(y(shown[1]))}; a double click shows all`;
    readout.textContent = (text ? text + ' \u00b7 ' : '') + part;
  };
  const show = part => {
    shown = part;
    svg.setAttribute('viewBox', part.join(' '));
    svg.setAttribute('preserveAspectRatio', part === all ? 'xMidYMid meet' : 'none');
    tell('');
  };
  const edges = (one, other) => [Math.min(one[0], other[0]), Math.min(one[1], other[1]), Math.abs(one[0] - other[0]), Math.abs(one[1] - other[1])];
  svg.addEventListener('pointerdown', event => {
    begin = place(event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener('pointermove', event => {
    const at = place(event);
    tell(`x ${words(x(at[0]))}, y ${words(y(at[1]))}`);
    if (!begin) return;
    const [across, down, wide, high] = edges(begin, at);
    Object.entries({ x: across, y: down, width: wide, height: high }).forEach(([name, value]) => frame.setAttribute(name, value));
    svg.appendChild(frame);
  });
  svg.addEventListener('pointerup', event => {
    const part = begin && edges(begin, place(event));
    begin = null;
    frame.remove();
    // A click is no part.
    if (part && part[2] > shown[2] / 100 && part[3] > shown[3] / 100) show(part);
  });
  svg.addEventListener('pointercancel', () => { begin = null; frame.remove(); });
  svg.addEventListener('dblclick', () => show(all));
  tell('');
}
