import { CLASSES, SHAPES } from "./palette";
import type { Projection } from "./raster";
import { makeSheet } from "./sprites";

/** One picture of points. `colours` are ordinary ones, then faded ones, three numbers each. */
export interface Picture {
  vertices: WebGLVertexArrayObject;
  count: number;
  width: number;
  height: number;
  projection: Projection;
  colours: Float32Array;
  marker: number;
}

/** The compiled shaders and what they need; gone when the context is lost. */
export interface Program {
  gl: WebGL2RenderingContext;
  draw(picture: Picture): void;
}

/** The one GL context of the page. All maps, of all widgets, draw in it one after the other. */
export interface SharedGL {
  /** Whether the driver computes on the CPU; the browser's own mark of slow contexts does not tell of all. */
  readonly software: boolean;
  /** Null while the context is lost. */
  program(): Program | null;
  /** Make room for a picture and clear it. */
  begin(width: number, height: number): void;
  /** Copy the picture to a map's canvas. */
  copyTo(context: CanvasRenderingContext2D, width: number, height: number): void;
  listen(listener: { lost(): void; restored(): void }): () => void;
}

/** Every widget of a notebook loads its own copy of this module: what they share lies on the global object. */
const KEY = Symbol.for("marginfold.explorer.gl.1");

/** Names of drivers that compute on the CPU. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** The page's context, made at the first call. Null where there is none, or one in software that is not allowed. */
export function sharedGL(software: boolean): SharedGL | null {
  const place = globalThis as unknown as Record<symbol, SharedGL | null | undefined>;
  place[KEY] ??= makeShared(software);
  return place[KEY]?.software && !software ? null : place[KEY];
}

function makeShared(software: boolean): SharedGL | null {
  const canvas = document.createElement("canvas");
  const gl = canvas.getContext("webgl2", {
    alpha: true,
    antialias: false,
    depth: false,
    premultipliedAlpha: true,
    preserveDrawingBuffer: false,
    failIfMajorPerformanceCaveat: !software,
  });
  if (!gl) return null;
  const listeners = new Set<{ lost(): void; restored(): void }>();
  let program: Program | null = makeProgram(gl);
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault();
    program = null;
    listeners.forEach((each) => each.lost());
  });
  canvas.addEventListener("webglcontextrestored", () => {
    program = makeProgram(gl);
    listeners.forEach((each) => each.restored());
  });
  return {
    software: SOFTWARE.test(driverOf(gl)),
    program: () => (gl.isContextLost() ? null : program),
    begin(width, height) {
      if (canvas.width < width) canvas.width = width;
      if (canvas.height < height) canvas.height = height;
      gl.viewport(0, canvas.height - height, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
    },
    copyTo(context, width, height) {
      context.globalCompositeOperation = "copy";
      context.drawImage(canvas, 0, 0, width, height, 0, 0, width, height);
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function driverOf(gl: WebGL2RenderingContext): string {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  return String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
}

const VERTEX = `#version 300 es
layout(location = 0) in float x;
layout(location = 1) in float y;
layout(location = 2) in uint kind;
layout(location = 3) in uint state;
uniform vec2 origin, scale, middle, size;
uniform float marker;
uniform vec3 colours[${2 * CLASSES}];
flat out vec3 colour;
flat out ivec2 sprite;
flat out float side;
void main() {
  uint layer = state & 3u;
  vec2 place = vec2((x - origin.x) * scale.x, (origin.y - y) * scale.y) + middle;
  vec2 centre = (floor(place) + 0.5) / size * 2.0 - 1.0;
  gl_Position = vec4(centre.x, -centre.y, 0.0, 1.0);
  bool selected = layer == 3u;
  side = selected ? marker + 2.0 : marker;
  gl_PointSize = side;
  colour = colours[kind % ${CLASSES}u + (layer == 2u ? ${CLASSES}u : 0u)];
  uint shape = 2u * ((kind / ${CLASSES}u) % ${SHAPES.length}u) + (state >> 2u & 1u);
  sprite = ivec2(selected ? int(marker) : 0, int(shape) * int(marker + 2.0));
}`;

const FRAGMENT = `#version 300 es
precision highp float;
precision highp int;
flat in vec3 colour;
flat in ivec2 sprite;
flat in float side;
uniform sampler2D masks;
out vec4 result;
void main() {
  float share = texelFetch(masks, sprite + ivec2(gl_PointCoord * side), 0).r;
  if (share == 0.0) discard;
  result = vec4(colour * share, share);
}`;

function makeProgram(gl: WebGL2RenderingContext): Program | null {
  const program = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(type);
    if (!shader) return null;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  const at = (name: string) => gl.getUniformLocation(program, name);
  const places = { origin: at("origin"), scale: at("scale"), middle: at("middle"), size: at("size"), marker: at("marker"), colours: at("colours") };
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  let loaded = 0;
  return {
    gl,
    draw({ vertices, count, width, height, projection, colours, marker }) {
      if (loaded !== marker) loadMasks(gl, (loaded = marker));
      gl.uniform2f(places.origin, projection.originX, projection.originY);
      gl.uniform2f(places.scale, projection.scaleX, projection.scaleY);
      gl.uniform2f(places.middle, projection.middleX, projection.middleY);
      gl.uniform2f(places.size, width, height);
      gl.uniform1f(places.marker, marker);
      gl.uniform3fv(places.colours, colours);
      gl.bindVertexArray(vertices);
      gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
    },
  };
}

/** All markers of a size in one texture: ordinary ones left, selected ones right, shapes below each other. */
function loadMasks(gl: WebGL2RenderingContext, marker: number): void {
  const { sprites, size, selectedSize } = makeSheet(marker);
  const width = size + selectedSize;
  const kinds = 2 * SHAPES.length;
  const pixels = new Uint8Array(width * kinds * selectedSize);
  sprites.forEach((sprite, index) => {
    const top = (index % kinds) * selectedSize;
    const left = index < kinds ? 0 : size;
    for (let row = 0; row < sprite.size; row++)
      pixels.set(sprite.coverage.subarray(row * sprite.size, (row + 1) * sprite.size), (top + row) * width + left);
  });
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, width, kinds * selectedSize, 0, gl.RED, gl.UNSIGNED_BYTE, pixels);
}
