package ansible_test

import (
	"fmt"

	"plimsoll/internal/run/ansible"
)

func ExampleFailure() {
	fmt.Println(ansible.Failure{Host: "db2", Task: "Install unzip", Text: "no package of this name"}.Error())
	// Output: host db2: task "Install unzip" failed: no package of this name
}
