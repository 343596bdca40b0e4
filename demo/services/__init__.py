"""Services as whole programs; tests start each of them as a user would."""
