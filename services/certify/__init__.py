"""Certification of partners' wallets: what one must do before it is called for money."""
