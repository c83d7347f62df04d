package prism

import (
	"encoding/json"
	"errors"
	"time"
)

// ReadElement reads one answer of v1 or v2.0 that was recorded: a page of entities of a kind.
func ReadElement(kind Kind, data []byte, floor float64) (Part, error) {
	var page elementPage
	if err := json.Unmarshal(data, &page); err != nil {
		return Part{}, errors.New("this is no answer of v1 or v2.0: " + form(err))
	}
	var p Part
	for i := range page.Entities {
		e, left := page.Entities[i].entity(kind, floor)
		p.Entities = append(p.Entities, e)
		p.Left.Add(left)
	}
	return p, nil
}

// ReadCentral reads the statistics of one entity that v4 gave and that were recorded, as of a moment by the server's
// clock.
func ReadCentral(data []byte, now time.Time, floor float64) (Entity, Left, error) {
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return Entity{}, Left{}, errors.New("this is no answer of v4: " + form(err))
	}
	c := Client{options: Options{MaxAge: 5 * time.Minute}}
	var g gathered
	if err := eachMember(answer.Data, func(name, value []byte) { c.newest(&g, name, value, now) }); err != nil {
		return Entity{}, Left{}, err
	}
	values, left := g.settle(floor)
	return Entity{Values: values}, left, nil
}
