package scenario

import (
	"encoding/json"
	"maps"
	"slices"
)

// schemaNode is one node of the JSON schema. json.Marshal sorts its keys, so the schema is the same every time.
type schemaNode = map[string]any

// Schema returns the JSON schema (draft 2020-12) of a scenario file for editors, made from the option tables. It
// describes the file before templating, so a field that is not a text may also be a text with {{ }} in it.
func Schema() ([]byte, error) {
	properties, required := schemaOf(fileFields)
	stepList := schemaNode{"type": "array", "items": schemaNode{"$ref": "#/$defs/step"}}
	named := func(rows []ArgSpec, extra schemaNode) schemaNode {
		return schemaNode{"type": "array", "items": schemaNode{
			"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": object(rows, extra)}}
	}
	disks := schemaNode{"anyOf": []any{
		object(diskFields, nil), schemaNode{"type": "array",
			"items": templated(schemaNode{"type": "integer", "minimum": 1})}}}
	bands := schemaNode{"type": "array", "items": object(bandFields, nil)}
	choice := func(values []string) schemaNode { return templated(schemaNode{"enum": values}) }
	results := named(resultFields, schemaNode{
		"result_value_bands": bands, "aggregate": choice(aggregates), "metric": choice(metricNames()),
		"result_type": choice(slices.Compact(slices.Sorted(slices.Values(slices.Concat(groupTypes,
			workloadTypes))))),
		"report_metrics": schemaNode{"type": "array", "items": choice(reportMetrics)}})
	groups := named(groupFields, schemaNode{"data_disks": disks})
	groups["items"].(schemaNode)["propertyNames"] = templated(schemaNode{"maxLength": MaxGroupName})
	for key, s := range map[string]schemaNode{
		"vms":       groups,
		"workloads": named(workloadFields, schemaNode{"iogen_params": object(iogenFields, nil)}),
		"results":   results,
		"assert":    named(assertFields, nil), "experiment": object(experimentFields, schemaNode{"factors": schemaNode{
			"type": "object", "minProperties": 1,
			"additionalProperties": templated(schemaNode{"type": "array", "minItems": 2})}}),
		"setup": stepList, "run": stepList, "teardown": stepList,
	} {
		s = maps.Clone(s) // the step list is shared
		for _, kept := range []string{"description", "x-plimsoll-extension"} {
			if v, ok := properties[key].(schemaNode)[kept]; ok {
				s[kept] = v
			}
		}
		properties[key] = s
	}
	properties["pre_setup"] = schemaNode{"type": "array", "maxItems": 0,
		"description": "belongs to the engine, must be absent"}
	properties["vars"] = schemaNode{"type": "object", "description": "variables of the template",
		"additionalProperties": schemaNode{"type": "object", "required": []string{"default"},
			"additionalProperties": false, "properties": onlyProperties(varFields)}}
	properties["presets"] = schemaNode{"type": "object", "description": "named sets of values for the variables",
		"additionalProperties": schemaNode{"type": "object",
			"properties": schemaNode{"vars": schemaNode{"type": "object"}}}}
	stepProperties := schemaNode{}
	for _, s := range steps {
		body := object(s.Args, nil)
		body["description"] = s.Doc
		if s.Extension {
			body["description"] = "Extension of Plimsoll: " + s.Doc
			body["x-plimsoll-extension"] = true
		}
		if len(body["required"].([]string)) == 0 {
			body["type"] = []string{"object", "null"}
		}
		stepProperties[s.Name] = body
	}
	return json.MarshalIndent(schemaNode{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Plimsoll scenario (test.yml)",
		"type": "object", "additionalProperties": false, "required": required, "properties": properties,
		"$defs": schemaNode{"step": schemaNode{
			"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
			"properties": stepProperties}},
	}, "", "  ")
}

// object is the schema of a mapping with the rows' fields; extra replaces the schema of some.
func object(rows []ArgSpec, extra schemaNode) schemaNode {
	properties, required := schemaOf(rows)
	for name, s := range extra {
		s := maps.Clone(s.(schemaNode))
		s["description"] = properties[name].(schemaNode)["description"]
		properties[name] = s
	}
	return schemaNode{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}

func onlyProperties(rows []ArgSpec) schemaNode {
	properties, _ := schemaOf(rows)
	return properties
}

func schemaOf(rows []ArgSpec) (properties schemaNode, required []string) {
	properties, required = schemaNode{}, []string{}
	for _, r := range rows {
		p := schemaOfType(r)
		p["description"] = r.Doc
		if r.Extension {
			p["description"] = "Extension of Plimsoll: " + r.Doc
			p["x-plimsoll-extension"] = true
		}
		if s, ok := r.Default.(Selector); ok {
			p["default"] = s.Text
		} else if r.Default != nil {
			p["default"] = r.Default
		}
		properties[r.Name] = p
		if r.Required {
			required = append(required, r.Name)
		}
	}
	return properties, required
}

// templated allows a text with an expression in place of the value.
func templated(s schemaNode) schemaNode {
	return schemaNode{"anyOf": []any{s, schemaNode{"type": "string", "pattern": `\{\{.*\}\}`}}}
}

func schemaOfType(r ArgSpec) schemaNode {
	switch r.Type {
	case Bool:
		return templated(schemaNode{"type": "boolean"})
	case Int, Number, Seconds, IntText, NumberText:
		return numberSchema(r)
	case Nodes:
		return schemaNode{"type": []string{"string", "integer"}}
	case TextList:
		return schemaNode{"type": "array", "items": schemaNode{"type": "string"}}
	case IntList:
		return schemaNode{"type": "array", "items": numberSchema(ArgSpec{Type: Int, Min: r.Min, Max: r.Max})}
	case Mapping:
		return schemaNode{"type": "object"}
	case sectionList:
		return schemaNode{"type": "array"}
	case Any:
		return schemaNode{}
	}
	s := schemaNode{"type": "string"}
	if len(r.Enum) > 0 {
		s["enum"] = r.Enum
	}
	return s
}

func numberSchema(r ArgSpec) schemaNode {
	n := schemaNode{"type": "number"}
	if r.Type == Int || r.Type == IntText {
		n["type"] = "integer"
	}
	for key, limit := range map[string]*float64{"minimum": r.Min, "maximum": r.Max, "exclusiveMinimum": r.Above} {
		if limit != nil {
			n[key] = *limit
		}
	}
	if r.Type == IntText || r.Type == NumberText {
		return schemaNode{"anyOf": []any{n, schemaNode{"type": "string"}}}
	}
	return templated(n)
}
