from forebay._accumulator.account import new_account as new_account
