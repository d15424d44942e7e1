// The objects of the contract under short names, and the types of its operations.
import type { components, operations } from "./generated/contract.js";

type Schemas = components["schemas"];

export type Envelope = Schemas["Envelope"];
/** A receiver's answer to a message. */
export type ReceiverReply =
  | { status: "ok" }
  | { status: "error"; error_code: string; detail?: string };
export type SendReply = Schemas["SendReply"];
export type MessageStatus = Schemas["MessageStatus"];
export type HistoryRow = Schemas["HistoryRow"];
export type MessageEventData = Schemas["MessageEvent"];
export type ReceiptEventData = Schemas["ReceiptEvent"];
export type ShownEventData = Schemas["ShownEvent"];
export type GapEventData = Schemas["GapEvent"];
export type ChannelInviteData = Schemas["ChannelInvite"];
export type DispatchedJob = Schemas["DispatchedJob"];
export type AgentRecord = Schemas["AgentRecord"];
export type DirectoryRow = Schemas["DirectoryRow"];
export type ChannelInfo = Schemas["Channel"];
export type ChannelMember = Schemas["ChannelMember"];
export type ChannelRow = Schemas["ChannelRow"];
export type ChannelDeliveryBody = Schemas["ChannelDelivery"];
export type CallbackEvent = Schemas["CallbackEvent"];
export type Frame = Schemas["Frame"];
export type FrameKind = Frame["kind"];
export type FramePayload<K extends FrameKind> = Extract<Frame, { kind: K }>["payload"];
export type SessionRoster = Schemas["SessionRoster"];
export type Job = Schemas["Job"];
export type SkillOffer = Schemas["SkillOffer"];
export type FoundAgent = Schemas["FoundAgent"];
export type KeyScope = Schemas["KeyScope"];

/** The name of an operation of the contract. */
export type OperationId = keyof operations;

/** The body of a successful answer in JSON. */
export type Reply<O extends OperationId> = operations[O]["reply"];
/** What a successful answer has in `data`. */
export type ReplyData<O extends OperationId> = Reply<O> extends { data: infer Data } ? Data : never;
/** The parameters of an operation: `path`, `query`, `header` and `body`, required where the contract requires them. */
export type Input<O extends OperationId> = Omit<operations[O], "reply">;
