"""Your own servers, each with a BMC that supports Redfish."""
