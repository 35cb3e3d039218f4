import { CallError, type Answer, type FrameArray, type Progress } from "./transport";

interface ArrayHeader {
  name: string;
  dtype: "f4" | "u1" | "u2" | "u4" | "i4";
  shape: number[];
  offset: number;
}

/** A frame as it was read: a result, a step of progress or an error. */
export type Frame =
  | { kind: "result"; answer: Answer }
  | { kind: "progress"; progress: Progress }
  | { kind: "error"; error: CallError };

const TYPES = { f4: Float32Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };
const ALIGNMENT = 8;

/**
 * Read one frame: u4le length of the header, JSON header, arrays that begin at multiples of eight.
 * The arrays are views of `bytes`; only bytes that begin off the alignment are copied first.
 */
export function decodeFrame(bytes: Uint8Array): Frame {
  const aligned = bytes.byteOffset % ALIGNMENT === 0 ? bytes : bytes.slice();
  if (aligned.byteLength < 4) throw malformed(`has ${aligned.byteLength} bytes`);
  const length = new DataView(aligned.buffer, aligned.byteOffset, 4).getUint32(0, true);
  const area = 4 + length;
  if (area > aligned.byteLength) throw malformed(`has ${aligned.byteLength} bytes and a header of ${length}`);
  if (area % ALIGNMENT !== 0) throw malformed(`has a header that ends at byte ${area}, not at a multiple of ${ALIGNMENT}`);
  const header = parseHeader(aligned.subarray(4, area));
  if (header.kind === "progress") return { kind: "progress", progress: header.body };
  if (header.kind === "error") return { kind: "error", error: new CallError(header.body.type, header.body.message) };
  if (header.kind !== "result") throw malformed(`is of the unknown kind ${String(header.kind)}`);
  const arrays: Record<string, FrameArray> = Object.create(null);
  for (const each of (header.arrays ?? []) as ArrayHeader[]) arrays[each.name] = readArray(aligned, area, each);
  return { kind: "result", answer: { body: header.body, arrays } };
}

/** Write one frame: what Python does, for tests and for answers made in the page. */
export function encodeFrame(kind: Frame["kind"], body: unknown, arrays: Record<string, FrameArray> = {}): Uint8Array<ArrayBuffer> {
  let offset = 0;
  const headers: ArrayHeader[] = [];
  for (const [name, array] of Object.entries(arrays)) {
    headers.push({ name, dtype: dtypeOf(array), shape: array.shape, offset });
    offset = roundUp(offset + array.byteLength);
  }
  const text = new TextEncoder().encode(JSON.stringify({ kind, body, arrays: headers }));
  const area = roundUp(4 + text.length);
  const bytes = new Uint8Array(area + offset).fill(0x20, 4, area);
  new DataView(bytes.buffer).setUint32(0, area - 4, true);
  bytes.set(text, 4);
  headers.forEach((header) => {
    const array = arrays[header.name];
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), area + header.offset);
  });
  return bytes;
}

/** Give a typed array the shape it has in Python. */
export function shaped<T extends Float32Array | Uint8Array | Uint16Array | Uint32Array | Int32Array>(array: T, ...shape: number[]): T & { shape: number[] } {
  return Object.assign(array, { shape });
}

function readArray(bytes: Uint8Array, area: number, { name, dtype, shape, offset }: ArrayHeader): FrameArray {
  const type = TYPES[dtype];
  if (!type) throw malformed(`has the array ${name} of the unknown type ${dtype}`);
  const size = shape.reduce((product, each) => product * each, 1);
  if (area + offset + size * type.BYTES_PER_ELEMENT > bytes.byteLength) throw malformed(`ends before its array ${name}`);
  return shaped(new type(bytes.buffer as ArrayBuffer, bytes.byteOffset + area + offset, size), ...shape);
}

function parseHeader(bytes: Uint8Array) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw malformed("has a header that is no JSON");
  }
}

function dtypeOf(array: FrameArray): ArrayHeader["dtype"] {
  for (const [dtype, type] of Object.entries(TYPES)) if (array instanceof type) return dtype as ArrayHeader["dtype"];
  throw malformed("holds an array of no known type");
}

function roundUp(size: number): number {
  return Math.ceil(size / ALIGNMENT) * ALIGNMENT;
}

function malformed(why: string): CallError {
  return new CallError("Unexpected", `the answer cannot be read: a frame ${why}`);
}
