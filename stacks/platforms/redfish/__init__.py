"""Servers of your own, each with a BMC that speaks Redfish."""
