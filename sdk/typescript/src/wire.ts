// The objects of the contract under short names, and the types of its operations.
import type { components, operations } from "./generated/contract.js";
import type { OPERATIONS } from "./generated/operations.js";

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
export type OperationId = keyof typeof OPERATIONS & keyof operations;

type JsonBody<Content> = Content extends { content: { "application/json": infer Body } } ? Body : never;
type Responses<O extends OperationId> = operations[O]["responses"];
/** The body of a successful answer in JSON. */
export type Reply<O extends OperationId> = { [S in keyof Responses<O>]: JsonBody<Responses<O>[S]> }[keyof Responses<O>];
/** What a successful answer has in `data`. */
export type ReplyData<O extends OperationId> = Reply<O> extends { data: infer Data } ? Data : never;

type BodyOf<O extends OperationId> = operations[O] extends { requestBody: infer R }
  ? JsonBody<R>
  : operations[O] extends { requestBody?: infer R }
    ? JsonBody<Exclude<R, undefined>> | undefined
    : undefined;
interface Parts<O extends OperationId> {
  path: operations[O]["parameters"]["path"];
  query: operations[O]["parameters"]["query"];
  header: operations[O]["parameters"]["header"];
  body: BodyOf<O>;
}
type PresentKey<P> = { [K in keyof P]: [P[K]] extends [undefined] ? never : K }[keyof P];
type RequiredKey<P> = { [K in PresentKey<P>]: undefined extends P[K] ? never : K }[PresentKey<P>];
/** The parameters of an operation: `path`, `query`, `header` and `body`, required where the contract requires them. */
export type Input<O extends OperationId> = { [K in RequiredKey<Parts<O>>]: Parts<O>[K] } & {
  [K in Exclude<PresentKey<Parts<O>>, RequiredKey<Parts<O>>>]?: Exclude<Parts<O>[K], undefined>;
};
