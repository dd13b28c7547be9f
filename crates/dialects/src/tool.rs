//! The traits of tools, and the entries of the dialects' tables.

use pinfold::{CachedFile, Changes, Done, Error, Operation};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::{TextReply, as_text, text_reply};
use crate::names::{AnswerNames, CLASSIC_NAMES};
use crate::{Answer, ToolContext};

/// A tool. Its arguments are the struct's fields, and its description is the struct's documentation.
pub(crate) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// The name that agents call it by.
    const NAME: &'static str;
    /// The name that people see.
    const TITLE: &'static str;
    /// Whether calling it twice has the same effect as calling it once.
    const IDEMPOTENT: bool;
    /// Whether it may replace or remove existing files.
    const DESTRUCTIVE: bool = !<<Self::Op as Operation>::Changes as Changes>::READ_ONLY;
    /// The operation that it performs.
    type Op: Operation;
    /// The type of its reply.
    type Reply;

    /// Makes the operation from the arguments.
    fn operation(&self, ctx: &ToolContext<'_>) -> Result<Self::Op, Error>;
    /// Makes the reply from the outcome.
    fn reply(&self, done: Done<Self::Op>, ctx: &ToolContext<'_>) -> Self::Reply;
    /// The error message that repeats arguments, if the dialect has one for this error.
    fn error_text(&self, _: &Error, _: &ToolContext<'_>) -> Option<String> {
        None
    }
    /// The arguments on one line, for the user.
    fn compact_params(&self, ctx: &ToolContext<'_>) -> String;
}

/// A tool whose arguments choose between several operations, or that performs none.
pub(crate) trait DispatchTool: DeserializeOwned + JsonSchema + Send + 'static {
    /// The name that agents call it by.
    const NAME: &'static str;
    /// The name that people see.
    const TITLE: &'static str;
    /// The annotations for clients.
    const ANNOTATIONS: Annotations;
    /// The type of its reply.
    type Reply;

    /// Performs the operation that the arguments choose.
    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Self::Reply, Error>;
    /// As [`Tool::error_text`].
    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String>;
    /// The arguments on one line, for the user.
    fn compact_params(&self, ctx: &ToolContext<'_>) -> String;
}

/// A tool that takes another tool's arguments under other names, and does the same.
pub(crate) trait Alias: DeserializeOwned + JsonSchema + Send + 'static {
    /// The name that agents call it by.
    const NAME: &'static str;
    /// The tool.
    type Of: Tool;

    /// Converts the arguments to those of the tool.
    fn into_tool(self) -> Result<Self::Of, Error>;
}

/// Annotations for clients about a tool, besides its schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It may replace or remove existing files.
    pub destructive: bool,
    /// Calling it twice has the same effect as calling it once.
    pub idempotent: bool,
}

/// A tool in a dialect's table.
#[derive(Debug)]
pub struct ToolEntry {
    /// The name that agents call it by.
    pub name: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// The annotations for clients.
    pub annotations: Annotations,
    /// Whether it only reads one file.
    pub reads_one_file: bool,
    pub(crate) input: fn() -> Value,
    pub(crate) output: fn() -> Option<Value>,
    /// The entry of a tool that Anthropic's models know. It is listed without a schema.
    pub(crate) anthropic: Option<fn() -> Value>,
    /// The syntax and the grammar of a text that OpenAI's models write instead of arguments.
    pub(crate) openai_grammar: Option<(&'static str, &'static str)>,
    /// The names in its answers.
    pub(crate) names: &'static AnswerNames,
    /// Parses arguments after they were checked.
    pub(crate) parse: fn(Value) -> Result<Box<dyn ParsedCall>, Error>,
}

/// A tool with its arguments.
pub(crate) trait ParsedCall: Send {
    /// Performs the call.
    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Answer, Error>;
    /// As [`Tool::error_text`].
    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String>;
    /// The arguments on one line, for the user.
    fn compact_params(&self, ctx: &ToolContext<'_>) -> String;
    /// The file that the call reads: see [`pinfold::Session::cached_file`].
    fn cached_file(&self, ctx: &ToolContext<'_>) -> Option<CachedFile>;
}

/// The arguments of a tool, with the function that turns its replies into answers.
struct ParsedTool<T: Tool> {
    tool: T,
    answer: fn(T::Reply) -> Answer,
}

impl<T: Tool> ParsedCall for ParsedTool<T> {
    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Answer, Error> {
        let operation = self.tool.operation(ctx)?;
        let done = ctx.session.perform_with(&operation, ctx.call)?;
        Ok((self.answer)(self.tool.reply(done, ctx)))
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        self.tool.error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        self.tool.compact_params(ctx)
    }

    fn cached_file(&self, ctx: &ToolContext<'_>) -> Option<CachedFile> {
        ctx.session.cached_file(&self.tool.operation(ctx).ok()?)
    }
}

/// The same, for a tool with several operations.
struct ParsedDispatch<T: DispatchTool> {
    tool: T,
    answer: fn(T::Reply) -> Answer,
}

impl<T: DispatchTool> ParsedCall for ParsedDispatch<T> {
    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Answer, Error> {
        Ok((self.answer)(self.tool.perform(ctx)?))
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        self.tool.error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        self.tool.compact_params(ctx)
    }

    fn cached_file(&self, _: &ToolContext<'_>) -> Option<CachedFile> {
        None
    }
}

fn deserialize<T: DeserializeOwned>(arguments: Value) -> Result<T, Error> {
    serde_json::from_value(arguments).map_err(|error| Error::InvalidArgument(error.to_string()))
}

/// Parses a tool's arguments.
pub(crate) fn parse<T: Tool>(
    arguments: Value,
    answer: fn(T::Reply) -> Answer,
) -> Result<Box<dyn ParsedCall>, Error> {
    Ok(Box::new(ParsedTool { tool: deserialize::<T>(arguments)?, answer }))
}

/// Parses the arguments of a tool with several operations.
pub(crate) fn parse_dispatch<T: DispatchTool>(
    arguments: Value,
    answer: fn(T::Reply) -> Answer,
) -> Result<Box<dyn ParsedCall>, Error> {
    Ok(Box::new(ParsedDispatch { tool: deserialize::<T>(arguments)?, answer }))
}

/// Parses the arguments of an alias.
pub(crate) fn parse_alias<T: Alias>(
    arguments: Value,
    answer: fn(<T::Of as Tool>::Reply) -> Answer,
) -> Result<Box<dyn ParsedCall>, Error> {
    Ok(Box::new(ParsedTool { tool: deserialize::<T>(arguments)?.into_tool()?, answer }))
}

impl ToolEntry {
    /// The table entry of a tool, with the schema of its answers and the function that parses its arguments.
    pub(crate) const fn of<T: Tool>(
        output: fn() -> Option<Value>,
        parse: fn(Value) -> Result<Box<dyn ParsedCall>, Error>,
    ) -> Self {
        let read_only = <T::Op as Operation>::Changes::READ_ONLY;
        Self {
            name: T::NAME,
            title: T::TITLE,
            annotations: Annotations {
                read_only,
                destructive: T::DESTRUCTIVE,
                idempotent: T::IDEMPOTENT,
            },
            reads_one_file: <T::Op as Operation>::READS_ONE_FILE,
            input: crate::schema::input::<T>,
            output,
            anthropic: None,
            openai_grammar: None,
            names: &CLASSIC_NAMES,
            parse,
        }
    }

    /// The table entry of a tool with several operations.
    pub(crate) const fn dispatch<T: DispatchTool>(
        output: fn() -> Option<Value>,
        parse: fn(Value) -> Result<Box<dyn ParsedCall>, Error>,
    ) -> Self {
        Self {
            name: T::NAME,
            title: T::TITLE,
            annotations: T::ANNOTATIONS,
            reads_one_file: false,
            input: crate::schema::input::<T>,
            output,
            anthropic: None,
            openai_grammar: None,
            names: &CLASSIC_NAMES,
            parse,
        }
    }
}

/// The table entry of an alias.
pub(crate) const fn alias<T: Alias>(
    names: &'static AnswerNames,
    parse: fn(Value) -> Result<Box<dyn ParsedCall>, Error>,
) -> ToolEntry {
    ToolEntry {
        name: T::NAME,
        input: alias_input::<T>,
        names,
        ..ToolEntry::of::<T::Of>(|| None, parse)
    }
}

/// The schema of an alias. If the alias has no documentation, it has the other tool's description.
fn alias_input<T: Alias>() -> Value {
    let mut input = crate::schema::input::<T>();
    if input.get("description").is_none() {
        input["description"] = crate::schema::input::<T::Of>()["description"].take();
    }
    input
}

/// The table entry of a tool that answers with an object, which has a schema.
pub(crate) const fn structured<T: Tool<Reply: Serialize + JsonSchema>>() -> ToolEntry {
    ToolEntry::of::<T>(
        || Some(crate::schema::output::<T::Reply>()),
        |arguments| {
            parse::<T>(arguments, |reply| Answer::Structured {
                json: as_text(&reply),
                failed: false,
            })
        },
    )
}

/// The same, if the object begins with a text that may be long.
pub(crate) const fn structured_text<T: Tool<Reply: TextReply + JsonSchema>>() -> ToolEntry {
    ToolEntry::of::<T>(
        || Some(crate::schema::output::<T::Reply>()),
        |arguments| {
            parse::<T>(arguments, |reply| Answer::Structured {
                json: text_reply(reply),
                failed: false,
            })
        },
    )
}
