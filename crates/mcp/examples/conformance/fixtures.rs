//! The handler: the suite's fixtures first, and Pinfold for everything else.

use std::sync::{Arc, Mutex, PoisonError};

use pinfold_mcp::Server;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, RequestStateCodec, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::watch;

use crate::changes::{self, Lists};
use crate::{content, input_required, prompts, resources, talking};

/// What all requests have in common, whoever makes them.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Signs what a client carries from one round of a request to the next.
    pub(crate) seals: RequestStateCodec,
    pub(crate) lists: watch::Sender<Lists>,
    tools: Vec<Tool>,
}

impl Shared {
    /// With a key that no other process knows.
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let mut key = [0; RequestStateCodec::MIN_KEY_LENGTH];
        rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self {
            seals: RequestStateCodec::try_new(key)?,
            lists: watch::Sender::default(),
            tools: [content::tools(), talking::tools(), changes::tools(), input_required::tools()]
                .concat(),
        })
    }
}

/// Answers the requests of one session, or one request that stands alone.
#[derive(Debug)]
pub(crate) struct Fixtures {
    pinfold: Server,
    pub(crate) shared: Arc<Shared>,
    /// The lists as they were when this began.
    began: Lists,
    level: Mutex<Option<LoggingLevel>>,
}

impl Fixtures {
    pub(crate) fn new(pinfold: Server, shared: Arc<Shared>) -> Self {
        let began = *shared.lists.borrow();
        Self { pinfold, shared, began, level: Mutex::default() }
    }

    /// From which level on the client of a request wants to be told things, if at all.
    pub(crate) fn level(&self, context: &RequestContext<RoleServer>) -> Option<LoggingLevel> {
        let of_session = || *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        context.meta.log_level().or_else(of_session)
    }
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder()
        .enable_completions()
        .enable_logging()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_tools()
        .enable_tool_list_changed()
        .build()
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.pinfold.get_info();
        info.capabilities = capabilities();
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.pinfold.initialize(request, context).await?;
        result.capabilities = capabilities();
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.pinfold.list_tools(request, context).await?;
        list.tools.extend_from_slice(&self.shared.tools);
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let fixture = self.shared.tools.iter().find(|tool| tool.name == name);
        fixture.cloned().or_else(|| self.pinfold.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(result) = content::call(&request) {
            return Ok(result.into());
        }
        if let Some(result) = talking::call(self, &request, &context).await {
            return Ok(result.into());
        }
        if let Some(result) = changes::call(&self.shared.lists, &request) {
            return Ok(result.into());
        }
        if let Some(answer) = input_required::call(&self.shared.seals, &request, &context) {
            return answer;
        }
        self.pinfold.call_tool(request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let level = request.level;
        self.pinfold.set_level(request, context).await?;
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match input_required::prompt(&self.shared.seals, &request, &context) {
            Some(answer) => answer,
            None => prompts::get(&request).map(Into::into),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        prompts::complete(&request)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(Into::into)
    }

    // No resource ever changes, so it need not be remembered who wants to know.

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        changes::tell(self.shared.lists.subscribe(), self.began, &subscription).await;
        Ok(())
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.pinfold.on_roots_list_changed(context).await;
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.pinfold.on_custom_request(request, context).await
    }
}
