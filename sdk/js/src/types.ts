// What is asked and answered. Fields that only pass through have the server's names: docs/openapi.yaml has them all.

export type Language = 'python' | 'javascript' | 'typescript' | 'bash' | 'sh'
export type Strings = Record<string, string>

/** Rules for what leaves a sandbox: see `policies`. */
export type Policy =
  | 'block'
  | 'open'
  | {
      allowOut?: string[]
      denyOut?: string[]
      rules?: Record<string, { transform: { headers: Strings } }[]>
      egressProxy?: { address: string; username?: string; password?: string }
    }

export interface ContextOptions {
  conversationId: string
  pathId: string
  /** The rest is for a sandbox that is made; `ttlSeconds` holds from each call that gives it. */
  template?: string
  ttlSeconds?: number
  metadata?: Strings
  envs?: Strings
  network?: Policy
}

export interface ContextInfo {
  id: string
  tenantId: string
  conversationId: string
  pathId: string
  parentPathId: string | null
  sandboxId: string | null
  sandboxStatus: 'creating' | 'ready' | 'terminated' | 'error'
  templateId: string
  ttlSeconds: number
  createdAt: string
  lastUsedAt: string
  expiresAt: string
  terminatedAt: string | null
  errorMessage: string | null
  resourceUsage: Record<string, number>
}

export interface PathInfo {
  pathId: string
  parentPathId: string | null
  mergedInto: string | null
  createdAt: string
  contextId: string | null
  sandboxStatus: 'creating' | 'ready' | null
}

export interface CellResult {
  is_main_result: boolean
  text?: string
  html?: string
  markdown?: string
  svg?: string
  png?: string
  jpeg?: string
  pdf?: string
  latex?: string
  javascript?: string
  data?: Record<string, unknown>
  json?: any
  chart?: Record<string, unknown>
}

export interface CellError {
  name: string
  value: string
  traceback: string
}

/** Of `run`. Code that failed is a result like any other. */
export interface RunResult {
  success: boolean
  stdout: string
  stderr: string
  exitCode: number
  executionTimeMs: number
  sandboxId: string
  contextId: string
  wasCreated: boolean
  /** The sandbox replaces one that was lost: its variables and files are gone. */
  replaced: boolean
  keptLost?: boolean
  results: CellResult[]
  error: CellError | null
  truncated: { stdout: boolean; stderr: boolean }
  sanitised?: Record<string, number>
  checkpoint?: { checkpointId: string; messageId: string } | { skipped: string }
}

/** Of `runAnalysis`. */
export interface AnalysisResult extends RunResult {
  result: any
  parsedOutput: any
  parseError: string | null
}

/** Who wants output as it comes. */
export interface Listeners {
  onStdout?: (text: string) => void
  onStderr?: (text: string) => void
  onResult?: (result: CellResult) => void
}

export interface RunOptions extends Listeners {
  language?: Language
  timeoutSeconds?: number
  envs?: Strings
  /** A checkpoint is left before the first call of a message. */
  messageId?: string
  sanitise?: 'enforce' | 'report-only' | 'off'
  signal?: AbortSignal
}

export interface AnalysisOptions extends Listeners {
  parameters?: unknown
  /** For the type `custom`. */
  code?: string
  language?: 'python' | 'javascript'
  outputFormat?: 'json' | 'text' | 'csv'
  timeoutSeconds?: number
  sanitise?: 'enforce' | 'report-only' | 'off'
  signal?: AbortSignal
}

export interface Checkpoint {
  checkpointId: string
  messageId?: string
  parentId?: string
  createdAt: string
  memoryBytes: number
  kernels: boolean
  current: boolean
}

export interface Kernel {
  contextId: string
  language: string
  state: 'carried' | 'fresh' | 'replayed'
  reason?: string
  dropped?: { fd: number; what: string }[]
  diverged?: { cell: number; expected: string; got: string }[]
}

export interface BranchOptions {
  inherit?: 'none' | 'files' | 'state' | 'replay'
  atMessageId?: string
  checkpointId?: string
  accept?: 'files'
  /** How long to wait for a cell that runs. */
  waitSeconds?: number
  ttlSeconds?: number
  metadata?: Strings
  envs?: Strings
  network?: Policy
}

export type RewindTo = ({ messageId: string } | { checkpointId: string }) & { accept?: 'files' }

export interface ExploreOptions {
  language?: Language
  /** Of each. */
  timeoutSeconds?: number
  waitSeconds?: number
  /** How long the copies are kept to be adopted: 60. */
  keepSeconds?: number
}

/** Of one code: what it came to, or (`code`, `message`) why it did not run. */
export type Candidate = { index: number; candidateId?: string } & Partial<RunResult> & { code?: number; message?: string; unavailable?: true }

export interface Exploration {
  explorationId: string
  keptUntil: string | null
  kernels?: Kernel[]
  results: Candidate[]
}

export interface ExecuteOptions {
  language?: Language
  stdin?: string
  /** 1 to 300; 30. */
  timeoutSeconds?: number
  files?: { path: string; content: string }[]
  envs?: Strings
  limits?: { memoryMb?: number; cpus?: number; outputBytes?: number }
  /** Comes back in the answer. */
  sessionId?: string
  sanitise?: 'enforce' | 'report-only' | 'off'
  signal?: AbortSignal
}

/** Of `executeCode` and `executeFile`: a program in a sandbox of its own. */
export interface ExecutionResult {
  status: 'success' | 'timeout' | 'execution_error' | 'setup_error'
  stdout: string
  stderr: string
  exitCode: number | null
  /** Seconds. */
  duration: number
  errorMessage: string | null
  sessionId: string | null
  sandboxId: string
  truncated: { stdout: boolean; stderr: boolean }
  sanitised?: Record<string, number>
  resourceUsage: { cpuSeconds: number; memoryMb: number; diskBytes: number }
}

export interface SandboxOptions {
  template?: string
  /** How long it lives: 300. */
  timeoutSeconds?: number
  metadata?: Strings
  envs?: Strings
  network?: Policy
  /** Volumes by the path that they have inside. */
  volumes?: Record<string, string | { name: string; readOnly?: boolean }>
  /** At its end it is paused, and the next use wakes it. */
  autoPause?: boolean
}

export interface SandboxInfo {
  sandboxID: string
  templateID: string
  alias?: string
  state: 'running' | 'paused'
  startedAt: string
  endAt: string
  cpuCount: number
  memoryMB: number
  diskSizeMB: number
  metadata?: Strings
  envdAccessToken?: string
  trafficAccessToken?: string | null
  domain?: string | null
}

/** Of a command. One that failed is a result like any other. */
export interface ExecResult {
  success: boolean
  exitCode: number
  stdout: string
  stderr: string
  /** Seconds. */
  duration: number
}

export interface ExecOptions {
  cwd?: string
  envs?: Strings
  user?: string
  stdin?: string
  /** 60; 0 for none. */
  timeoutSeconds?: number
  onStdout?: (text: string) => void
  onStderr?: (text: string) => void
  signal?: AbortSignal
}

export interface StartOptions {
  /** Its name; made up if it is left out. */
  id?: string
  cwd?: string
  envs?: Strings
  user?: string
  /** It reads what `sendInput` sends; otherwise it has nothing to read. */
  stdin?: boolean
}

export interface SessionOptions {
  /** Of a session that was opened before; the rest is for a new one. */
  id?: string
  cwd?: string
  envs?: Strings
}

export interface PortOptions {
  /** `http`: it must answer a request for `path` with `status`. */
  mode?: 'tcp' | 'http'
  path?: string
  /** 200 to 399. */
  status?: number | { min: number; max: number }
  /** 30. */
  timeoutSeconds?: number
}

export interface FileInfo {
  name: string
  path: string
  type: 'file' | 'directory' | 'symlink' | 'other'
  size: number
}

export interface Volume {
  volumeID: string
  name: string
  token?: string
}

export interface AgentOptions {
  command: string[]
  env?: Strings
  cwd?: string
  user?: 'user' | 'root'
  /** Seconds; `agent_timeout` of the server. */
  timeout?: number
  sandboxId?: string
  conversationId?: string
  pathId?: string
  ttlSeconds?: number
  template?: string
  metadata?: Strings
  network?: Policy
  /** Requests for files and terminals that it has for its client are answered in the sandbox. */
  serveFs?: boolean
  source?: { type: 'tar' | 'bundle'; data?: string; path?: string; into?: string }
}

export interface AgentInfo {
  agentId: string
  sandboxId: string
  conversationId?: string
  pathId?: string
  state: 'running' | 'exited' | 'killed' | 'timed_out' | 'failed' | 'lost'
  command: string
  pid: number
  startedAt: string
  endAt?: string
  endedAt?: string
  reason?: string
  fault?: 'agent' | 'client' | 'sandbox' | 'infrastructure'
  exitCode?: number
  signal?: string
  messagesIn: number
  messagesOut: number
  messagesKept: number
  noise: number
  connected: number
  writer: boolean
  acp: string
}
