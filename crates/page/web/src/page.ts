// The page: everything is below `pin-app`.

import "./notice.ts";
import "./app.ts";
