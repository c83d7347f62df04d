module plimsoll

go 1.26
