package postgres_test

import (
	"fmt"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/exporters/postgres"
)

// What is refused says what to do.
func Example() {
	_, err := postgres.Kind().Open(target.Options{"url": "postgresql://app:hush@db.example/bench"})
	fmt.Println(err)
	// Output:
	// exporter postgres: option "url": it holds a password, which lists of processes and histories show; give it with password=env:NAME or password=file:PATH
}
