"""Checks of the facts' quality and of the service's objectives."""
