// Generated from Pinfold's schemas by `cargo test -p pinfold-embed --test types`. Do not edit.

/** The settings of the configuration file, in camelCase. */
export interface Settings {
  /**
   * Whether tools that require absolute paths also accept relative ones, which start at the first root.
   * Default: `false`.
   */
  relativePaths?: boolean | null | undefined;
  /**
   * Whether tools and arguments have only names that every framework accepts: letters, digits and `_`.
   * Default: `false`.
   */
  portableNames?: boolean | null | undefined;
  /**
   * Directories that tools may read but not change, besides the roots and regardless of the rules.
   * Default: `[]`.
   */
  readRoots?: Array<string> | null | undefined;
  /** The directory of the dialect `memory`, which is created if it is missing. It has its own fence, and other tools cannot reach it. */
  memory?: string | null | undefined;
  /**
   * Whether changes are described instead of made.
   * Default: `false`.
   */
  dryRun?: boolean | null | undefined;
  /**
   * How much is flushed to the disk before a change is complete.
   * `none`: Nothing: the change survives a crash of the process, but perhaps not a loss of power.
   * `data`: The content, before the rename: a loss of power leaves the old or the new content.
   * `full`: The directory too: a loss of power after the call leaves the new content.
   * Default: `"data"`.
   */
  durability?: "none" | "data" | "full" | null | undefined;
  /**
   * Whether a file must be read before it is changed; by dialect if not set.
   * `require`: The session must have read the file, and the file must not have changed since.
   * `off`: Any file can be changed.
   */
  readBeforeWrite?: "require" | "off" | null | undefined;
  /**
   * How an edit finds the text that it replaces.
   * `lenient`: The exact text, else whole lines ignoring trailing whitespace, else whole lines with another indentation. A replacement of all occurrences replaces exact ones only.
   * `exact`: The exact text, with any line endings.
   * Default: `"lenient"`.
   */
  matching?: "lenient" | "exact" | null | undefined;
  /**
   * The largest file that can be edited, in bytes.
   * Default: `104857600`.
   */
  maxEditBytes?: number | null | undefined;
  /** Whether changes are journalled, so that they can be undone. If not set, the command line keeps a journal and the library does not. */
  journal?: boolean | string | null | undefined;
  /**
   * For how many days the journal keeps backups.
   * Default: `30`.
   */
  journalDays?: number | null | undefined;
  /**
   * How many bytes on disk the journal may take.
   * Default: `1073741824`.
   */
  maxJournalBytes?: number | null | undefined;
  /**
   * Whether a change that cannot be journalled is refused, or made with a warning.
   * `refuse`: The change is refused.
   * `warn`: The change is made, and the result warns that it cannot be undone.
   * Default: `"refuse"`.
   */
  journalFailure?: "refuse" | "warn" | null | undefined;
  /** How many bytes of text one result may have; by dialect if not set. */
  maxOutputBytes?: number | null | undefined;
  /**
   * How many characters of a line are shown.
   * Default: `2000`.
   */
  maxLineChars?: number | null | undefined;
  /**
   * Whether the text of PDF files is extracted, or the files are refused.
   * `extract`: Their text is extracted.
   * `reject`: They are refused.
   * Default: `"extract"`.
   */
  documents?: "extract" | "reject" | null | undefined;
  /** Images with a longer side, in pixels, are scaled down; none if not set. */
  maxImageSide?: number | null | undefined;
  /** Images with more bytes are scaled down; none if not set. */
  maxImageBytes?: number | null | undefined;
  /**
   * How many files `Glob` lists.
   * Default: `1000`.
   */
  maxGlobFiles?: number | null | undefined;
  /**
   * Whether searches cache the tree and an index of its content.
   * `auto`: Searches cache the tree and its content, and watch it for changes.
   * `strict`: As `auto`, but every cached file is compared with the disk on each search.
   * `off`: Searches cache nothing.
   * Default: `"auto"`.
   */
  index?: "auto" | "strict" | "off" | null | undefined;
  /** Bytes of memory that the index may take, with the cached contents; by default 3 % of the memory, at most 256 MiB. */
  maxIndexBytes?: number | null | undefined;
  /**
   * How much text a search reads after its page is full, to count the other matches, in bytes.
   * Default: `268435456`.
   */
  maxCountBytes?: number | null | undefined;
  /**
   * How long one call may take, in seconds. The time that the user takes to answer an approval request does not count.
   * Default: `60`.
   */
  deadlineSeconds?: number | null | undefined;
  /** The audit log: a file that gets a line for every call. */
  audit?: string | null | undefined;
  /**
   * Whether changes are refused while the audit log cannot be written.
   * `refuse`: Changes are refused.
   * `ignore`: Changes are made.
   * Default: `"refuse"`.
   */
  auditFailure?: "refuse" | "ignore" | null | undefined;
  /** The permission mode and rules. */
  permissions?: {
    /**
     * Permission mode for operations that no rule matches.
     * `default`: Reads are allowed; changes need approval.
     * `secure-file-access`: Reads and changes are allowed; protected paths need approval.
     * `acceptEdits`: As `secure-file-access`, but deleting needs approval.
     * `plan`: Changes are denied, regardless of the rules.
     * `dontAsk`: Operations that would need approval are denied.
     * `bypassPermissions`: Nothing needs approval. The fence and deny rules hold.
     * Default: `"secure-file-access"`.
     */
    mode?: "default" | "secure-file-access" | "acceptEdits" | "plan" | "dontAsk" | "bypassPermissions" | null | undefined;
    /**
     * Rules that allow: each `Operation(pattern)`, `Operation` or `*`.
     * Default: `[]`.
     */
    allow?: Array<string> | null | undefined;
    /**
     * Rules that need the user's approval.
     * Default: `[]`.
     */
    ask?: Array<string> | null | undefined;
    /**
     * Rules that deny.
     * Default: `[]`.
     */
    deny?: Array<string> | null | undefined;
  } | null | undefined;
}

/** A family of tools; `all` means the first three. */
export type Dialect = "classic" | "dotted" | "scoped" | "reference" | "editor" | "editor-20250124" | "patch" | "gemini" | "memory" | "toolset" | "opencode" | "all";

/** The arguments of `Read`. */
export interface ReadArgs {
  /** Absolute path. */
  file_path: string;
  /** First line, counting from 1. */
  offset?: number | null | undefined;
  /** Most lines; 2000 if left out. */
  limit?: number | null | undefined;
  /** Pages of a PDF, such as `3` or `2-5`. */
  pages?: string | null | undefined;
}

/** The arguments of `Write`. */
export interface WriteArgs {
  /** Absolute path. */
  file_path: string;
  /** The whole new content, stored as UTF-8. */
  content: string;
}

/** The arguments of `Edit`. */
export interface EditArgs {
  /** Absolute path. */
  file_path: string;
  /** The text to replace, exactly as it is in the file. */
  old_string: string;
  /** The text to put in its place. */
  new_string: string;
  /** Replace every occurrence. */
  replace_all?: boolean | null | undefined;
}

/** The arguments of `MultiEdit`. */
export interface MultiEditArgs {
  /** Absolute path. */
  file_path: string;
  /** The replacements, in order. */
  edits: Array<{
    old_string: string;
    new_string: string;
    replace_all?: boolean | null | undefined;
  }>;
}

/** The arguments of `NotebookEdit`. */
export interface NotebookEditArgs {
  /** Absolute path. */
  notebook_path: string;
  /** The cell's id as Read shows it; `cell-N` for cell N if it has none. The new cell of `insert` comes after it, or first if left out. */
  cell_id?: string | null | undefined;
  /** The cell's new source; unused by `delete`. */
  new_source: string;
  /** Kind of the cell. `insert` needs it; `replace` keeps the kind if left out. */
  cell_type?: "code" | "markdown" | "raw" | null | undefined;
  /** `replace` if left out. */
  edit_mode?: "replace" | "insert" | "delete" | null | undefined;
}

/** The arguments of `Delete`. */
export interface DeleteArgs {
  /** Absolute path, or relative to the workspace root. */
  path: string;
}

/** The arguments of `Move`. */
export interface MoveArgs {
  /** Absolute path of the file or directory. */
  source: string;
  /** Its new absolute path. */
  destination: string;
}

/** The arguments of `LS`. */
export interface LSArgs {
  /** Absolute path. */
  path: string;
  /** Globs to leave out. */
  ignore?: Array<string> | null | undefined;
}

/** The arguments of `Glob`. */
export interface GlobArgs {
  /** Glob with `**`, `*`, `?`, `[abc]`, `{a,b}`. */
  pattern: string;
  /** Absolute path to start from; all if left out. */
  path?: string | null | undefined;
}

/** The arguments of `Grep`. */
export interface GrepArgs {
  /** Regex, matched line by line unless multiline. */
  pattern: string;
  /** Absolute path: file or directory; all if left out. */
  path?: string | null | undefined;
  /** Files to search, such as `*.ts,!*.test.ts`. */
  glob?: string | null | undefined;
  /** Ripgrep file type, such as `py`. */
  type?: string | null | undefined;
  /** Paths, newest first (default); lines; or matches by file. */
  output_mode?: "files_with_matches" | "content" | "count" | null | undefined;
  /** Ignore case. */
  "-i"?: boolean | null | undefined;
  /** Line numbers; true if left out. */
  "-n"?: boolean | null | undefined;
  /** Lines after a match. */
  "-A"?: number | null | undefined;
  /** Lines before a match. */
  "-B"?: number | null | undefined;
  /** Lines around a match. */
  "-C"?: number | null | undefined;
  /** Matches span lines, `.` matches line ends. */
  multiline?: boolean | null | undefined;
  /** The pattern is plain text. */
  literal?: boolean | null | undefined;
  /** Most lines (content) or files; 250 if left out, 0 for all. */
  head_limit?: number | null | undefined;
  /** How many to skip. */
  offset?: number | null | undefined;
}

/** The arguments of `file.read`. */
export interface FileReadArgs {
  /** Path relative to the workspace root. */
  path: string;
  /** First line, counting from 1. */
  offset?: number | null | undefined;
  /** Most lines; all if left out. */
  limit?: number | null | undefined;
}

/** The result of `file.read`. */
export interface FileReadData {
  /** The lines, each with its number and a tab before it. */
  content: string;
  /** How many lines the file has. */
  total_lines: number;
  /** Whether lines were left out after the last one shown. */
  truncated: boolean;
  /** The offset to go on from, if lines were left out. */
  next_offset?: number | null | undefined;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `file.write`. */
export interface FileWriteArgs {
  /** Path relative to the workspace root. */
  path: string;
  /** The file's whole new content, stored as UTF-8 exactly as given. */
  content: string;
}

/** The result of `file.write`. */
export interface FileWriteData {
  /** Whether the file has the content now. */
  success: boolean;
  /** Bytes written; 0 if the file had this content already. */
  bytes_written: number;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `file.patch`. */
export interface FilePatchArgs {
  /** Path relative to the workspace root. */
  path: string;
  /** The replacements, in order. */
  patches: Array<{
    /** The text to replace, exactly as it is in the file. */
    find: string;
    /** The text to put in its place. */
    replace: string;
  }>;
}

/** The result of `file.patch`. */
export interface FilePatchData {
  /** Whether the patches are applied. */
  success: boolean;
  /** How many patches were applied. */
  patches_applied: number;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `file.delete`. */
export interface FileDeleteArgs {
  /** Path relative to the workspace root. */
  path: string;
}

/** The result of `file.delete`. */
export interface FileDeleteData {
  /** Whether the file is gone. */
  success: boolean;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `file.move`. */
export interface FileMoveArgs {
  /** Path of the file or directory, relative to the workspace root. */
  source: string;
  /** Its new path. */
  destination: string;
}

/** The result of `file.move`. */
export interface FileMoveData {
  /** Whether it was moved. */
  success: boolean;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `file.list`. */
export interface FileListArgs {
  /** Directory relative to the workspace root; the root if left out. */
  path?: string | null | undefined;
  /** Glob with `**`, `*`, `?`, `[abc]`, `{a,b}`. */
  pattern?: string | null | undefined;
}

/** The result of `file.list`. */
export interface FileListData {
  /** The files, by path. */
  files: Array<{
    /** Path relative to the workspace root. */
    path: string;
    /** Size in bytes. */
    size: number;
    /** When it was last changed, in UTC. */
    modified: string;
  }>;
  /** The names of its directories, where no pattern was given. */
  directories?: Array<string> | null | undefined;
  /** How many may not be shown. */
  withheld?: number | null | undefined;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `file.search`. */
export interface FileSearchArgs {
  /** Regex, matched line by line. */
  pattern: string;
  /** File or directory relative to the workspace root; the root if left out. */
  path?: string | null | undefined;
  /** Files to search, such as `*.py,!test_*`. */
  glob?: string | null | undefined;
  /** Whether upper and lower case differ; true if left out. */
  case_sensitive?: boolean | null | undefined;
  /** Lines before and after each match. */
  context_lines?: number | null | undefined;
  /** Most matches to show; 100 if left out. */
  max_results?: number | null | undefined;
}

/** The result of `file.search`. */
export interface FileSearchData {
  /** The matches, by path. */
  matches: Array<{
    /** Path relative to the workspace root. */
    path: string;
    /** Line number, counting from 1. */
    line: number;
    /** The line; with context, all lines, the matching one after `--> `. */
    content: string;
  }>;
  /** Whether there are more than are shown. */
  truncated: boolean;
  /** How many may not be shown. */
  withheld?: number | null | undefined;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `read_file`. */
export interface ReadFileArgs {
  /** Path relative to the workspace root. */
  path: string;
  /** First line, counting from 1. */
  startLine?: number | null | undefined;
  /** Last line, itself included. */
  endLine?: number | null | undefined;
}

/** The result of `read_file`. */
export interface ReadFileData {
  /** The lines as they are in the file. */
  content: string;
  /** How many lines the file has. */
  lines: number;
  /** Whether lines that were asked for are missing because there were too many. */
  truncated: boolean;
  /** The line to go on from, if lines are missing. */
  nextLine?: number | null | undefined;
  /** The file's encoding. */
  encoding: string;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `write_file`. */
export interface WriteFileArgs {
  /** Path relative to the workspace root. */
  path: string;
  /** The file's whole new content. */
  content: string;
  /** Encoding to store it in, e.g. `latin1`; `utf-8` if left out. */
  encoding?: string | null | undefined;
  /** Whether to create missing directories; false if left out. */
  createDirs?: boolean | null | undefined;
}

/** The result of `write_file`. */
export interface WriteFileData {
  /** The file. */
  path: string;
  /** Its size in bytes. */
  bytes: number;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `list_directory`. */
export interface ListDirectoryArgs {
  /** Directory relative to the workspace root. */
  path: string;
  /** List what is in subdirectories too. */
  recursive?: boolean | null | undefined;
  /** How many levels; 1 is the directory's own entries. */
  depth?: number | null | undefined;
  /** Only entries that this glob fits, such as `*.ts` or `src/**\/*.ts`. */
  glob?: string | null | undefined;
  /** List hidden entries too. */
  includeHidden?: boolean | null | undefined;
}

/** The result of `list_directory`. */
export interface ListDirectoryData {
  /** The entries, by path. */
  entries: Array<{
    /** Its name. */
    name: string;
    /** Path relative to the workspace root. */
    path: string;
    /** `file`, `directory`, `symlink` or `other`. */
    type: string;
    /** Size in bytes; 0 for directories. */
    size: number;
  }>;
  /** How many there are, shown or not. */
  total: number;
  /** Whether there are more than are shown. */
  truncated: boolean;
  /** How many may not be shown. */
  withheld?: number | null | undefined;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `search_files`. */
export interface SearchFilesArgs {
  /** What to search for. */
  pattern: string;
  /** File or directory relative to the workspace root; the root if left out. */
  path?: string | null | undefined;
  /** The pattern is a regex. */
  regex?: boolean | null | undefined;
  /** Whether upper and lower case differ; true if left out. */
  caseSensitive?: boolean | null | undefined;
  /** Lines before and after each match. */
  contextLines?: number | null | undefined;
  /** Files to search, such as `*.py,!test_*`. */
  glob?: string | null | undefined;
}

/** The result of `search_files`. */
export interface SearchFilesData {
  /** The matches, by path. */
  matches: Array<{
    /** Path relative to the workspace root. */
    file: string;
    /** Line number, counting from 1. */
    line: number;
    /** The matching line. */
    content: string;
    /** The lines around it, if some were asked for. */
    context?: {
      /** Lines before it. */
      before: Array<string>;
      /** Lines after it. */
      after: Array<string>;
    } | null | undefined;
  }>;
  /** How many there are, shown or not. */
  totalMatches: number;
  /** How many files were searched. */
  filesSearched: number;
  /** Whether there are more than are shown; absent if not. */
  truncated?: boolean | null | undefined;
  /** How many may not be shown. */
  withheld?: number | null | undefined;
  /** What else there is to know. */
  message?: string | null | undefined;
}

/** The arguments of `get_file_info`. */
export interface GetFileInfoArgs {
  /** Path relative to the workspace root. */
  path: string;
}

/** The result of `get_file_info`. */
export interface GetFileInfoData {
  /** Its name, without directories. */
  name: string;
  /** Its path. */
  path: string;
  /** `file`, `directory`, `symlink` or `other`. */
  type: string;
  /** Its size in bytes. */
  size: number;
  /** When it was last changed, in UTC. */
  modified: string;
  /** Its media type. */
  mime: string;
  /** How many lines it has; null where it is not text. */
  lines: number | null;
  /** Whether it is a symlink. */
  isSymlink: boolean;
  /** Where it points, as it is written in the link; null for other things. */
  symlinkTarget: string | null;
}

/** The arguments of every tool, by tool name. */
export interface ToolArgs {
  "Read": ReadArgs;
  "Write": WriteArgs;
  "Edit": EditArgs;
  "MultiEdit": MultiEditArgs;
  "NotebookEdit": NotebookEditArgs;
  "Delete": DeleteArgs;
  "Move": MoveArgs;
  "LS": LSArgs;
  "Glob": GlobArgs;
  "Grep": GrepArgs;
  "file.read": FileReadArgs;
  "file.write": FileWriteArgs;
  "file.patch": FilePatchArgs;
  "file.delete": FileDeleteArgs;
  "file.move": FileMoveArgs;
  "file.list": FileListArgs;
  "file.search": FileSearchArgs;
  "read_file": ReadFileArgs;
  "write_file": WriteFileArgs;
  "list_directory": ListDirectoryArgs;
  "search_files": SearchFilesArgs;
  "get_file_info": GetFileInfoArgs;
}

/** The results of the tools that return an object, by tool name. */
export interface ToolData {
  "file.read": FileReadData;
  "file.write": FileWriteData;
  "file.patch": FilePatchData;
  "file.delete": FileDeleteData;
  "file.move": FileMoveData;
  "file.list": FileListData;
  "file.search": FileSearchData;
  "read_file": ReadFileData;
  "write_file": WriteFileData;
  "list_directory": ListDirectoryData;
  "search_files": SearchFilesData;
  "get_file_info": GetFileInfoData;
}
