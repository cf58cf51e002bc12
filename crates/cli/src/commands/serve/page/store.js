/** Values of channels, cycle by cycle, in one piece: what is older than room for them goes. */
class Store {
  constructor(channels) {
    this.channels = channels;
    this.keep = Math.min(131072, Math.floor(2097152 / Math.max(channels.length, 1)));
    this.length = 0;
    this.time = new Float64Array(2 * this.keep);
    this.cycle = new Float64Array(2 * this.keep);
    this.columns = channels.map(() => new Float64Array(2 * this.keep));
  }

  /** The same with other channels: those that were there keep their past. */
  with(channels) {
    const other = new Store(channels);
    const from = Math.max(0, this.length - other.keep);
    other.length = this.length - from;
    other.time.set(this.time.subarray(from, this.length));
    other.cycle.set(this.cycle.subarray(from, this.length));
    channels.forEach((channel, place) => {
      const here = this.channels.indexOf(channel);
      if (here < 0) other.columns[place].fill(NaN, 0, other.length);
      else other.columns[place].set(this.columns[here].subarray(from, this.length));
    });
    return other;
  }

  /** Takes rows of cycle, time and a value for each channel. */
  append(numbers, rows) {
    const width = 2 + this.channels.length;
    if (this.length + rows > this.time.length) {
      const from = this.length - this.keep;
      for (const it of [this.time, this.cycle, ...this.columns]) it.copyWithin(0, from, this.length);
      this.length = this.keep;
    }
    for (let row = 0, at = 0; row < rows; row++, at += width, this.length++) {
      this.cycle[this.length] = numbers[at];
      this.time[this.length] = numbers[at + 1];
      for (let place = 0; place < this.columns.length; place++) {
        this.columns[place][this.length] = numbers[at + 2 + place];
      }
    }
  }

  get newest() {
    return this.length ? this.time[this.length - 1] : NaN;
  }

  /** Number of the first row that is not before this time. */
  first(time) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The rows from one time to another, which stay as they are. */
  copy(from, to) {
    const [begin, end] = [this.first(from), this.first(to)];
    const it = Object.create(Store.prototype);
    it.channels = this.channels;
    it.keep = it.length = end - begin;
    it.time = this.time.slice(begin, end);
    it.cycle = this.cycle.slice(begin, end);
    it.columns = this.columns.map((column) => column.slice(begin, end));
    return it;
  }

  /** Value of the channel in this place at a time: that of the last cycle released until then. */
  at(place, time) {
    const row = this.first(time + 1e-9) - 1;
    return row < 0 ? NaN : this.columns[place][row];
  }

  /** Rows from one time to another as comma-separated values, times from `origin`. */
  csv(from, to, origin) {
    const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
    const names = this.channels.map((it) => quoted(it.unit ? `${it.name} [${it.unit}]` : it.name));
    const lines = [["time [s]", "cycle", ...names].join(",")];
    for (let row = this.first(from); row < this.length && this.time[row] <= to; row++) {
      const values = this.columns.map((column) => (Number.isNaN(column[row]) ? "" : column[row]));
      lines.push([(this.time[row] - origin).toFixed(9), this.cycle[row], ...values].join(","));
    }
    return `${lines.join("\n")}\n`;
  }
}
