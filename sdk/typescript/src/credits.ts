// Credits: whole hundredths. A binary float is a type error, because 0.1 + 0.2 is not 0.3.
import { InputError } from "./errors.js";

/** An amount as it is written: `"0.10"`. */
export type CreditText = `${number}`;

/** The most that a hub accepts. */
const MAX_HUNDREDTHS = 100_000_000_000;

export class Credits {
  readonly hundredths: number;

  private constructor(hundredths: number) {
    this.hundredths = hundredths;
  }

  /** From digits with at most two decimals, such as `"0.10"`. */
  static parse(text: CreditText | Credits): Credits {
    if (text instanceof Credits) return text;
    const match = typeof text === "string" ? /^(\d{1,10})(?:\.(\d{1,2}))?$/.exec(text) : null;
    if (match === null) throw new InputError("credits are digits with at most two decimals");
    return Credits.ofHundredths(Number(match[1]) * 100 + Number((match[2] ?? "").padEnd(2, "0")));
  }

  static ofHundredths(hundredths: number): Credits {
    if (!Number.isSafeInteger(hundredths) || hundredths < 0 || hundredths > MAX_HUNDREDTHS) {
      throw new InputError("credits are between 0 and 1 000 000 000");
    }
    return new Credits(hundredths);
  }

  /** From a number of the wire. Below the limit every amount has one nearest double, so nothing is lost. */
  static fromWire(amount: number): Credits {
    return Credits.ofHundredths(Math.round(amount * 100));
  }

  plus(other: Credits): Credits {
    return Credits.ofHundredths(this.hundredths + other.hundredths);
  }

  /** At least zero. */
  minus(other: Credits): Credits {
    return Credits.ofHundredths(Math.max(0, this.hundredths - other.hundredths));
  }

  isLessThan(other: Credits): boolean {
    return this.hundredths < other.hundredths;
  }

  toString(): string {
    return `${Math.floor(this.hundredths / 100)}.${String(this.hundredths % 100).padStart(2, "0")}`;
  }

  /** The shortest double of the amount prints at most two decimals. */
  toJSON(): number {
    return this.hundredths / 100;
  }
}
