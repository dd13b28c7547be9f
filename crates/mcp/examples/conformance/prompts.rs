//! Prompts, and how their arguments are completed.

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, GetPromptRequestParams,
    GetPromptResult, Prompt, PromptArgument, PromptMessage, ResourceContents, Role,
};

use crate::content::PNG;

pub(crate) fn list() -> Vec<Prompt> {
    let argument = |name: &str, about: &str| {
        PromptArgument::new(name).with_description(about).with_required(true)
    };
    let first_and_second =
        vec![argument("arg1", "First test argument"), argument("arg2", "Second test argument")];
    let uri = vec![argument("resourceUri", "URI of the resource to embed")];
    vec![
        Prompt::new("test_simple_prompt", Some("Has no arguments"), None),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("Repeats its arguments"),
            Some(first_and_second),
        ),
        Prompt::new("test_prompt_with_embedded_resource", Some("Has a resource in it"), Some(uri)),
        Prompt::new("test_prompt_with_image", Some("Has an image in it"), None),
        Prompt::new("test_input_required_result_prompt", Some("Asks the user first"), None),
    ]
}

pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|given| given.get(name)?.as_str()).ok_or_else(|| {
            ErrorData::invalid_params(format!("the argument `{name}` is missing"), None)
        })
    };
    let content = match request.name.as_str() {
        "test_simple_prompt" => vec![ContentBlock::text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            let text = format!("Prompt with arguments: arg1='{first}', arg2='{second}'");
            vec![ContentBlock::text(text)]
        }
        "test_prompt_with_embedded_resource" => {
            let text = "Embedded resource content for testing.";
            vec![
                ContentBlock::resource(ResourceContents::text(text, argument("resourceUri")?)),
                ContentBlock::text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            ContentBlock::image(PNG, "image/png"),
            ContentBlock::text("Please analyze the image above."),
        ],
        name => {
            return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None));
        }
    };
    Ok(GetPromptResult::new(content.into_iter().map(by_user).collect()))
}

pub(crate) fn by_user(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}

/// Completes the arguments of every prompt, to the same words.
pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let begin = request.argument.value.as_str();
    let words = ["paris", "park", "party", "test", "testing"];
    let words = words.into_iter().filter(|word| word.starts_with(begin)).map(str::to_owned);
    let completion = CompletionInfo::with_all_values(words.collect());
    let completion = completion.map_err(|why| ErrorData::internal_error(why, None))?;
    Ok(CompleteResult::new(completion))
}
