package mariadb

// At is a server by its address.
var At = at
