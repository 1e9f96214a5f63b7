/**
 * Why something was lost or refused: which decision of which step fits.
 *
 * A loss names a place in a frame (`/result/tools/0/icons`), a decision one in a definition (`Tool.icons`). So a pointer
 * is followed through the definitions of the revision that the frame was in. Nothing here draws.
 */

import { split } from "./difference.js";

/**
 * @typedef {object} Decision
 * @property {string} [name]
 * @property {string[]} [at] Places in definitions; `*` stands for anything.
 * @property {string[]} [arm] What stands there, where it is about that alone.
 * @property {string} do
 * @property {string[]} [losses] The kinds of loss that it makes.
 * @property {string} [method]
 * @property {string} [frame] `request`, `result` or `notification`.
 * @property {number[]} [codes] The first and the last of the error codes that it is about.
 * @property {string} [text] What is said where it refuses.
 * @property {string} reason
 *
 * @typedef {object} Step
 * @property {string} from
 * @property {string} to
 * @property {string} page
 * @property {Decision[]} decisions
 * @property {Record<string, string[]>} frames By method: the definition of the request, and those of its results.
 * @property {Record<string, string[]>} places Which definitions stand where.
 *
 * @typedef {{step: Step, decision: Decision}} Reason
 * @typedef {{method: string, kind: string, code?: number}} Frame
 */

const MOST = 3;
const DEEPEST = 40;

/**
 * Give the decisions that fit a loss best.
 * @param {Step[]} steps @param {Frame} frame @param {{pointer: string, kind: string, cosmetic: boolean}} loss
 * @param {any} [value] What was lost: of several decisions about one place, it says which.
 * @returns {Reason[]}
 */
export function reasonsOfLoss(steps, frame, loss, value) {
  /** @type {(Reason & {fit: number})[]} */
  const found = [];
  for (const step of steps) {
    const levels = levelsOf(step, frame, loss.pointer);
    for (const decision of step.decisions) {
      if (decision.losses && !decision.losses.includes(loss.kind)) continue;
      if (!decision.losses && (decision.do === "keep" || decision.do.startsWith("refuse"))) continue;
      const fit = fitOf(decision, frame, levels) + (decision.losses ? 0.4 : 0) + ((decision.do === "cosmetic") === loss.cosmetic ? 0.2 : 0) + (decision.name ? 0.05 : 0) - (decision.do === "guard" ? 0.1 : 0);
      if (fit >= 1) found.push({ step, decision, fit });
    }
  }
  const best = Math.max(...found.map((one) => one.fit));
  const fitting = found.filter((one) => one.fit === best);
  const type = typeof value?.type === "string" ? value.type.replaceAll("_", "").toLowerCase() : null;
  const named = fitting.filter(({ decision }) => type !== null && decision.arm?.some((arm) => arm.toLowerCase().startsWith(type)));
  return (named.length ? named : fitting).slice(0, MOST);
}

/**
 * Give the decisions that fit a refusal: those that say these words, else those about the method.
 * @param {Step[]} steps @param {Frame} frame @param {string} said
 * @returns {Reason[]}
 */
export function reasonsOfRefusal(steps, frame, said) {
  const all = steps.flatMap((step) => step.decisions.filter((one) => one.do.startsWith("refuse")).map((decision) => ({ step, decision })));
  const spoken = all.filter(({ decision }) => decision.text !== undefined && likeText(decision.text, "").test(said));
  return (spoken.length ? spoken : all.filter(({ decision }) => decision.method === frame.method && !decision.frame)).slice(0, MOST);
}

/**
 * Say how well a decision fits: how deep its place is, counted from 1; 0 for not at all.
 * @param {Decision} decision @param {Frame} frame @param {Set<string>[]} levels
 */
function fitOf(decision, frame, levels) {
  const { at, codes, method } = decision;
  if (codes) return frame.code !== undefined && frame.code >= Number(codes[0]) && frame.code <= Number(codes[1]) ? 1 : 0;
  if (at) {
    const places = at.map((one) => likeText(one));
    for (let depth = levels.length; depth > 0; depth -= 1) {
      for (const place of levels[depth - 1] ?? []) if (places.some((one) => one.test(place))) return depth;
    }
    return 0;
  }
  const isAbout = (method === "*" || method === frame.method) && (!decision.frame || decision.frame === frame.kind);
  return isAbout ? 1 : 0;
}

/**
 * Follow a pointer: at each part of it, the places in definitions that it may be.
 * @param {Step} step @param {Frame} frame @param {string} pointer
 * @returns {Set<string>[]}
 */
function levelsOf(step, frame, pointer) {
  const [request, ...results] = Object.hasOwn(step.frames, frame.method) ? (step.frames[frame.method] ?? []) : [];
  const isResult = frame.kind === "result";
  const parts = split(pointer).slice(isResult ? 1 : 0, DEEPEST);
  let level = reach(step, new Set(isResult ? results : request ? [request] : []));
  const levels = [level];
  for (const part of parts) {
    const next = new Set();
    for (const place of level) {
      next.add(`${place}.${part}`);
      if (/^\d+$/.test(part)) next.add(`${place}[]`);
      if (Object.keys(step.places).some((one) => one.startsWith(`${place}{}`)) || step.decisions.some((one) => one.at?.some((at) => at.startsWith(`${place}{}`)))) next.add(`${place}{}`);
    }
    level = reach(step, next);
    levels.push(level);
  }
  return levels;
}

/**
 * Add the definitions that stand at places, and those that they are.
 * @param {Step} step @param {Set<string>} places
 */
function reach(step, places) {
  for (const place of places) for (const name of Object.hasOwn(step.places, place) ? (step.places[place] ?? []) : []) places.add(name);
  return places;
}

/**
 * Make a pattern of a text in which `*` and `{name}` stand for anything; `{}` is itself.
 * @param {string} text @param {string} [start] With what it begins; a refusal says first where it was.
 */
function likeText(text, start = "^") {
  const parts = text.split(/\*|\{\w+\}/).map((part) => part.replace(/[\\^$.+?()[\]{}|/]/g, "\\$&"));
  return new RegExp(`${start}${parts.join(".*")}$`, "s");
}
